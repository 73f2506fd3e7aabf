/* An assignment has a value, and goes from the right. */
#pragma D option quiet

BEGIN { a = b = c = 4; a += b -= 1; printf("%d %d %d\n", a, b, c); exit(0); }
