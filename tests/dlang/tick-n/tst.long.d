/* Minutes, hours, days: they come in their time. */
#pragma D option quiet
tick-1s { s++; }
tick-1m { printf("%d\n", s); }
tick-1min { printf("%d\n", s); exit(0); }
tick-1h, tick-1hour, tick-1d, tick-1day { printf("never\n"); }
