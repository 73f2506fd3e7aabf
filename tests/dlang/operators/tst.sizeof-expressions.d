/* sizeof evaluates nothing. */
#pragma D option quiet

BEGIN { x = 1; n = sizeof (x++); printf("%d %d\n", n, x); exit(0); }
