/* A profile probe and a tick of the same rate. */
#pragma D option quiet

profile-100hz { p++; }
tick-100hz { t++; }
tick-95ms { printf("%d %d\n", p, t); exit(0); }
