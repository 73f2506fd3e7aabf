/* A tick comes as often as it says. */
#pragma D option quiet

tick-10ms { n++; }
tick-105ms { printf("%d\n", n); exit(0); }
