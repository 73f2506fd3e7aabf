/* The sizes of constants by their form. */
#pragma D option quiet

BEGIN { printf("%d %d %d %d %d %d\n", sizeof (1), sizeof (1L), sizeof (1LL), sizeof (0xffffffff), sizeof (4294967295), sizeof ('a')); exit(0); }
