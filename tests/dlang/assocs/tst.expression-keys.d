/* A key is any expression, of an element, too. */
#pragma D option quiet

BEGIN { a[1] = 2; a[2] = 7; i = 1; printf("%d %d\n", a[a[i]], a[i + 1] + a[3 - 2]); exit(0); }
