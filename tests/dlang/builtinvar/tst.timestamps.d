/* The clock stands still within a clause, and never goes back. */
#pragma D option quiet
BEGIN { t = timestamp; printf("%d %d\n", timestamp == t, walltimestamp == walltimestamp); }
tick-1ms { printf("%d\n", timestamp > t); exit(0); }
END { printf("%d\n", timestamp >= t); }
