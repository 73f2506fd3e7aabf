#!/usr/bin/env -S kinst-run -s
/*
 * filetop.d - files by what is read from them and written to them, with the program that does.
 *
 * Pipes and sockets have no name. The argument is the number of files to print; those with most calls come last.
 *
 * USAGE: kinst-run -s samples/d/linux/filetop.d VMLINUX [FILES] --initrd FILE --console /dev/null
 */

#pragma D option quiet
#pragma D option defaultargs

fbt::vfs_read:entry, fbt::vfs_write:entry
{
	self->file = args[0]->f_path.dentry;
}

fbt::vfs_read:return
/self->file && (int64_t)arg1 >= 0/
{
	@file_calls[execname, stringof(self->file->d_name.name)] = count();
	@file_read[execname, stringof(self->file->d_name.name)] = sum(arg1);
	@file_written[execname, stringof(self->file->d_name.name)] = sum(0);
}

fbt::vfs_write:return
/self->file && (int64_t)arg1 >= 0/
{
	@file_calls[execname, stringof(self->file->d_name.name)] = count();
	@file_read[execname, stringof(self->file->d_name.name)] = sum(0);
	@file_written[execname, stringof(self->file->d_name.name)] = sum(arg1);
}

fbt::vfs_read:return, fbt::vfs_write:return
{
	self->file = 0;
}

END
{
	trunc(@file_calls, $1 ? $1 : 30);
	printf("%-16s %-24s %8s %10s %10s\n", "PROGRAM", "FILE", "CALLS", "READ", "WRITTEN");
	printa("%-16s %-24s %@8d %@10d %@10d\n", @file_calls, @file_read, @file_written);
}
