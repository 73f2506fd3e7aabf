/* <<= and >>= keep the sign of the left side. */
#pragma D option quiet

BEGIN { x = -16; x >>= 2; y = 1; y <<= 10; printf("%d %d\n", x, y); exit(0); }
