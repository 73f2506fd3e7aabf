/* A number that cannot be is an illegal operation. */
#pragma D option quiet
BEGIN { speculate(2); }
BEGIN { commit(-1); }
BEGIN { discard(99); }
ERROR { printf("%d %d\n", arg4, arg4 == DTRACEFLT_ILLOP); }
BEGIN { exit(0); }
