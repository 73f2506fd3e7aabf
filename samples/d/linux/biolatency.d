#!/usr/bin/env -S kinst-run -s
/*
 * biolatency.d - how long disks take, by disk and direction: from a request's start to its end.
 *
 * USAGE: kinst-run -s samples/d/linux/biolatency.d VMLINUX --initrd FILE --disk FILE --console /dev/null
 */

#pragma D option quiet

io:::start
{
	io_at[args[0]->b_edev, args[0]->b_blkno, args[0]->b_flags & B_READ] = timestamp;
}

io:::done
/io_at[args[0]->b_edev, args[0]->b_blkno, args[0]->b_flags & B_READ]/
{
	this->ns = timestamp - io_at[args[0]->b_edev, args[0]->b_blkno, args[0]->b_flags & B_READ];
	io_at[args[0]->b_edev, args[0]->b_blkno, args[0]->b_flags & B_READ] = 0;
	this->direction = args[0]->b_flags & B_READ ? "reads" : "writes";
	@io_times[args[1]->dev_statname, this->direction] = quantize(this->ns / 1000);
	@io_requests[args[1]->dev_statname, this->direction] = count();
	@io_ns[args[1]->dev_statname, this->direction] = sum(this->ns);
}

END
{
	printa("%s %s (us)%@d\n", @io_times);
	printa("%s: %s: %@d requests, %@d ns\n", @io_requests, @io_ns);
}
