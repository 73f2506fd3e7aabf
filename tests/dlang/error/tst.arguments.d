/* ERROR: arg1 is the enabling, arg2 the action, arg4 the kind of fault, arg5 the address. */
#pragma D option quiet
BEGIN { printf("fine\n"); }
BEGIN { x = 1; y = *(int *)0x10; }
ERROR { printf("%d %d %d %d %x\n", arg0, arg1, arg2, arg4, arg5); exit(0); }
