#!/usr/bin/env -S kinst-run -s
/*
 * opensnoop.d - files as they are opened, or cannot be.
 *
 * The name is read when the call returns: then the kernel has read it, so its page is there.
 *
 * FIELDS:
 *	FD, ERRNO	the descriptor, or why there is none
 *
 * USAGE: kinst-run -s samples/d/linux/opensnoop.d VMLINUX --initrd FILE --console /dev/null
 */

#pragma D option quiet

BEGIN
{
	printf("%6s %-16s %4s %5s %s\n", "PID", "PROGRAM", "FD", "ERRNO", "FILE");
}

syscall::openat:entry
{
	self->opened = arg1;
}

syscall::openat:return
/self->opened/
{
	printf("%6d %-16s %4d %5d %s\n", pid, execname, errno ? -1 : (int)arg1, errno, copyinstr(self->opened));
	self->opened = 0;
}
