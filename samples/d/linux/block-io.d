#!/usr/bin/env -S kinst-run -s
/*
 * block-io.d - size of what is read from and written to disks, by program.
 *
 * The program is the one that runs when the disk is asked: of what is written later, a thread of the kernel.
 *
 * USAGE: kinst-run -s samples/d/linux/block-io.d VMLINUX --initrd FILE --disk FILE --console /dev/null
 */

#pragma D option quiet

io:::start
{
	this->way = args[0]->b_flags & B_READ ? "reads from" : "writes to";
	@block_sizes[execname, this->way, args[1]->dev_statname] = quantize(args[0]->b_bcount);
}

END
{
	printa("%s %s %s (bytes)%@d\n", @block_sizes);
}
