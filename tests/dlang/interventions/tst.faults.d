/* Only a probe at an instruction has a CPU to change, and what must not be written is a fault. */
/* @image: kernel arm64 */
/* @options: -q -w --console /dev/null */
fbt::kmalloc:entry { regs[R_PC] = 2; }
fbt::kmalloc:entry /n++ == 3/ { exit(0); }
ERROR { printf("%d %x\n", arg4, arg5); }
