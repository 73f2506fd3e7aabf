/* Bits bind less than comparisons, as in C. */
#pragma D option quiet

BEGIN { x = 6; printf("%d %d %d\n", x & 3 == 3, (x & 3) == 2, 1 | 2 ^ 3 & 1); exit(0); }
