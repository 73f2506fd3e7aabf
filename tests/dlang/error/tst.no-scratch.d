/* More scratch memory than there is. */
#pragma D option quiet
BEGIN { alloca(1 << 30); }
ERROR { printf("%d %d\n", arg4, arg4 == DTRACEFLT_NOSCRATCH); exit(0); }
