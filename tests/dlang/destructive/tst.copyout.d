/* Where nothing is, nothing can be written. */
#pragma D option quiet
#pragma D option destructive
BEGIN { copyout(alloca(4), 0x1000, 4); }
BEGIN { copyoutstr("text", 0x2000, 4); }
ERROR { printf("%d %x\n", arg4, arg5); }
BEGIN { exit(0); }
