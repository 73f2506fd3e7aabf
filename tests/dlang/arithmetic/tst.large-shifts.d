/* Only the low six bits of a count count. */
#pragma D option quiet

BEGIN { i = 65; x = 3L; printf("%d %d %d\n", x << i, x << 64, -8L >> 65); exit(0); }
