#!/usr/bin/env -S kinst-run -s
/*
 * failing-calls.d - system calls that fail, by program, call and error number.
 *
 * The numbers are those of errno.h: 2 is ENOENT. Those from 512 on never leave the kernel: it makes the call again, or
 * gives EINTR.
 *
 * USAGE: kinst-run -s samples/d/linux/failing-calls.d VMLINUX --initrd FILE --console /dev/null
 */

#pragma D option quiet

syscall:::return
/errno/
{
	@failed[execname, probefunc, errno] = count();
}

END
{
	printf("%-16s %-24s %5s %8s\n", "PROGRAM", "CALL", "ERRNO", "COUNT");
	printa("%-16s %-24s %5d %@8d\n", @failed);
}
