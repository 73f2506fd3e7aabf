/* Nor by copyin() of nothing. */
#pragma D option quiet

BEGIN { p = copyin(0, 0); printf("%d\n", p != NULL); exit(0); }
