/* Suffixes in all orders, and what they make of a constant. */
#pragma D option quiet

BEGIN { printf("%d %d %d %d\n", sizeof (10u), sizeof (10UL), sizeof (10ull), 0xffffffffffffffffULL == -1); printf("%d\n", 0777 + 0x1F); exit(0); }
