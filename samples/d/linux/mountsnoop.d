#!/usr/bin/env -S kinst-run -s
/*
 * mountsnoop.d - file systems as they are mounted and unmounted.
 *
 * What is printed is what the program asked for; ERRNO says why it could not be.
 *
 * USAGE: kinst-run -s samples/d/linux/mountsnoop.d VMLINUX --initrd FILE --console /dev/null
 */

#pragma D option quiet

BEGIN
{
	printf("%6s %-16s %-7s %5s %s\n", "PID", "PROGRAM", "CALL", "ERRNO", "WHAT");
}

syscall::mount:entry
{
	self->mount_from = arg0;
	self->mount_to = arg1;
	self->mount_kind = arg2;
}

syscall::mount:return
/self->mount_to/
{
	this->from = self->mount_from ? copyinstr(self->mount_from) : "none";
	this->kind = self->mount_kind ? copyinstr(self->mount_kind) : "";
	this->to = copyinstr(self->mount_to);
	printf("%6d %-16s %-7s %5d %s on %s %s\n", pid, execname, "mount", errno, this->from, this->to, this->kind);
	self->mount_to = 0;
}

syscall::umount:entry
{
	self->unmounted = arg0;
}

syscall::umount:return
/self->unmounted/
{
	printf("%6d %-16s %-7s %5d %s\n", pid, execname, "umount", errno, copyinstr(self->unmounted));
	self->unmounted = 0;
}
