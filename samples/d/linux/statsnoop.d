#!/usr/bin/env -S kinst-run -s
/*
 * statsnoop.d - files that programs ask about: stat() and its kin, and access().
 *
 * USAGE: kinst-run -s samples/d/linux/statsnoop.d VMLINUX --initrd FILE --console /dev/null
 */

#pragma D option quiet

BEGIN
{
	printf("%6s %-16s %-12s %5s %s\n", "PID", "PROGRAM", "CALL", "ERRNO", "FILE");
}

syscall::newfstatat:entry, syscall::statx:entry, syscall::faccessat:entry, syscall::faccessat2:entry
{
	self->asked = arg1;
}

syscall::newfstatat:return, syscall::statx:return, syscall::faccessat:return, syscall::faccessat2:return
/self->asked/
{
	printf("%6d %-16s %-12s %5d %s\n", pid, execname, probefunc, errno, copyinstr(self->asked));
	self->asked = 0;
}
