#!/usr/bin/env -S kinst-run -s
/*
 * fileslower.d - reads and writes of files that take long, one by one.
 *
 * The argument is the time in us from which on one is shown, 1000 if there is none.
 *
 * USAGE: kinst-run -s samples/d/linux/fileslower.d VMLINUX [US] --initrd FILE --console /dev/null
 */

#pragma D option quiet
#pragma D option defaultargs

BEGIN
{
	printf("%-16s %6s %-5s %10s %10s %s\n", "PROGRAM", "PID", "CALL", "BYTES", "US", "FILE");
}

fbt::vfs_read:entry, fbt::vfs_write:entry
{
	self->slow_file = args[0]->f_path.dentry;
	self->slow_at = timestamp;
}

fbt::vfs_read:return, fbt::vfs_write:return
/self->slow_at && timestamp - self->slow_at >= 1000 * ($1 ? $1 : 1000)/
{
	this->us = (timestamp - self->slow_at) / 1000;
	this->call = probefunc == "vfs_read" ? "read" : "write";
	this->name = stringof(self->slow_file->d_name.name);
	printf("%-16s %6d %-5s %10d %10d %s\n", execname, pid, this->call, arg1, this->us, this->name);
}

fbt::vfs_read:return, fbt::vfs_write:return
{
	self->slow_at = 0;
}
