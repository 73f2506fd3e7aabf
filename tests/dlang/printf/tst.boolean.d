/* Comparisons are ints. */
#pragma D option quiet
BEGIN { printf("%d%d%d%d\n", 1 < 2, 2 < 1, 1 && 0, !0); exit(0); }
