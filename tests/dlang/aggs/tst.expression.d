/* The value is any expression, with its effects. */
#pragma D option quiet
BEGIN { i = 2; @a[i++, i++] = sum(i++ * 10); printf("%d\n", i); exit(0); }
