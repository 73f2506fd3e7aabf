/* Address 0 is bad for copyin() and copyinstr(); the address is told. */
#pragma D option quiet

BEGIN { copyin(0, 1); }
BEGIN { trace(copyinstr(0)); }
BEGIN { trace(copyinstr(0x10, 4)); }
ERROR { printf("fault %d at %x\n", arg4, arg5); }
BEGIN { exit(0); }
