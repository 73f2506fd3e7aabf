#!/usr/bin/env -S kinst-run -s
/*
 * block-io.d - size of what is read from and written to disks, by program.
 *
 * The program is the one that runs when the request is made: of what is written later, a thread of the kernel.
 *
 * USAGE: kinst-run -s samples/d/linux/block-io.d VMLINUX --initrd FILE --console /dev/null
 */

#pragma D option quiet

fbt::submit_bio_noacct:entry
{
	@block_sizes[execname, args[0]->bi_opf & 1 ? "write" : "read"] = quantize(args[0]->bi_iter.bi_size);
}

END
{
	printa("%s: %s (bytes)%@d\n", @block_sizes);
}
