#!/usr/bin/env -S kinst-run -s
/*
 * read-sizes.d - bytes that each read() gives, by program.
 *
 * What read() gives at the end of a file is 0; calls that fail are left out.
 *
 * USAGE: kinst-run -s samples/d/linux/read-sizes.d VMLINUX --initrd FILE --console /dev/null
 */

#pragma D option quiet

syscall::read:return
/!errno/
{
	@read_sizes[execname] = quantize(arg1);
}

END
{
	printa("%s%@d\n", @read_sizes);
}
