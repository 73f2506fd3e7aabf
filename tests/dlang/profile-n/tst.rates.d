/* A number alone is how often a second. */
#pragma D option quiet
profile:::profile-100 { n++; }
profile-100hz { m++; }
tick-1005ms { printf("%d %d\n", n, m); exit(0); }
