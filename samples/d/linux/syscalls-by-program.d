#!/usr/bin/env -S kinst-run -s
/*
 * syscalls-by-program.d - system calls that each program makes.
 *
 * Programs are known by their names: all runs of ls are one.
 *
 * USAGE: kinst-run -s samples/d/linux/syscalls-by-program.d VMLINUX --initrd FILE --console /dev/null
 */

#pragma D option quiet

syscall:::entry
{
	@program_calls[execname, probefunc] = count();
	@every_call = count();
}

END
{
	printf("%-16s %-24s %8s\n", "PROGRAM", "CALL", "COUNT");
	printa("%-16s %-24s %@8d\n", @program_calls);
	printa("%@d system calls in all\n", @every_call);
}
