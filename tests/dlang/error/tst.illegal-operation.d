/* What cannot be done. */
#pragma D option quiet
BEGIN { trace(lltostr(7, 99)); }
ERROR { printf("%d %d\n", arg4, arg4 == DTRACEFLT_ILLOP); exit(0); }
