/* Sums and products of 64 bits go round. */
#pragma D option quiet

int64_t m;

BEGIN { m = 0x7fffffffffffffff; printf("%d %d\n", m + 1, m * 2); m = -m - 1; printf("%d %d\n", -m, m - 1); exit(0); }
