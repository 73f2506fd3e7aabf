/* ^^ is true if one side is. */
#pragma D option quiet

BEGIN { printf("%d%d%d%d\n", 0 ^^ 0, 0 ^^ 2, 3 ^^ 0, 3 ^^ 4); a = 5; printf("%d%d\n", a ^^ 0, a ^^ a); exit(0); }
