/* How often a second. */
#pragma D option quiet
tick-10hz { n++; }
tick-10 { m++; }
tick-1050ms { printf("%d %d\n", n, m); exit(0); }
