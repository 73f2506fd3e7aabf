/* Nothing is there. */
#pragma D option quiet
BEGIN { x = *(char *)0x1234; }
ERROR { printf("%d %d %x\n", arg4, arg4 == DTRACEFLT_BADADDR, arg5); exit(0); }
