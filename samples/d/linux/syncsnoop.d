#!/usr/bin/env -S kinst-run -s
/*
 * syncsnoop.d - who makes the kernel write to disks: sync() and its kin, and the time that they take.
 *
 * USAGE: kinst-run -s samples/d/linux/syncsnoop.d VMLINUX --initrd FILE --console /dev/null
 */

#pragma D option quiet

BEGIN
{
	printf("%6s %-16s %-16s %10s\n", "PID", "PROGRAM", "CALL", "US");
}

syscall::sync:entry, syscall::fsync:entry, syscall::fdatasync:entry, syscall::syncfs:entry, syscall::msync:entry,
syscall::sync_file_range:entry
{
	self->sync_at = timestamp;
}

syscall::sync:return, syscall::fsync:return, syscall::fdatasync:return, syscall::syncfs:return, syscall::msync:return,
syscall::sync_file_range:return
/self->sync_at/
{
	printf("%6d %-16s %-16s %10d\n", pid, execname, probefunc, (timestamp - self->sync_at) / 1000);
	self->sync_at = 0;
	@syncs[probefunc] = count();
}

END
{
	printa("%s: %@d\n", @syncs);
}
