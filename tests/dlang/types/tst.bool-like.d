/* Comparisons and logical operators give an int, 0 or 1. */
#pragma D option quiet

BEGIN { printf("%d %d %d %d\n", sizeof (1 < 2), sizeof (1 && 1L), (5 > 3) + (2 != 2), !!7); exit(0); }
