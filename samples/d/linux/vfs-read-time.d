#!/usr/bin/env -S kinst-run -s
/*
 * vfs-read-time.d - time in vfs_read(), by program: from its entry to its return.
 *
 * USAGE: kinst-run -s samples/d/linux/vfs-read-time.d VMLINUX --initrd FILE --console /dev/null
 */

#pragma D option quiet

fbt::vfs_read:entry
{
	self->reading = timestamp;
}

fbt::vfs_read:return
/self->reading/
{
	@read_time[execname] = quantize(timestamp - self->reading);
	self->reading = 0;
}

END
{
	printa("%s (ns)%@d\n", @read_time);
}
