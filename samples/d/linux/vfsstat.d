#!/usr/bin/env -S kinst-run -s
/*
 * vfsstat.d - calls of the file systems' common functions, each second and in all.
 *
 * USAGE: kinst-run -s samples/d/linux/vfsstat.d VMLINUX --initrd FILE --console /dev/null
 */

#pragma D option quiet

int64_t reads, writes, opens, syncs, removals;

BEGIN
{
	printf("%8s %8s %8s %8s %8s\n", "READS", "WRITES", "OPENS", "SYNCS", "REMOVALS");
}

fbt::vfs_read:entry
{
	reads++;
}

fbt::vfs_write:entry
{
	writes++;
}

fbt::vfs_open:entry
{
	opens++;
}

fbt::vfs_fsync_range:entry
{
	syncs++;
}

fbt::vfs_unlink:entry
{
	removals++;
}

fbt::vfs_read:entry, fbt::vfs_write:entry, fbt::vfs_open:entry, fbt::vfs_fsync_range:entry, fbt::vfs_unlink:entry
{
	@vfs_calls[probefunc] = count();
}

tick-1s, END
{
	printf("%8d %8d %8d %8d %8d\n", reads, writes, opens, syncs, removals);
	reads = writes = opens = syncs = removals = 0;
}

END
{
	printa("%s: %@d\n", @vfs_calls);
}
