/* Nothing is asked for, and an address is given. */
#pragma D option quiet

BEGIN { p = alloca(0); q = alloca(1); printf("%d %d\n", p != NULL, q != NULL); exit(0); }
