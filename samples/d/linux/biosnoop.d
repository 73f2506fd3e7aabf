#!/usr/bin/env -S kinst-run -s
/*
 * biosnoop.d - each request to a disk: who, where, how much, how long.
 *
 * The program is the one that ran when the disk was asked.
 *
 * USAGE: kinst-run -s samples/d/linux/biosnoop.d VMLINUX --initrd FILE --disk FILE --console /dev/null
 */

#pragma D option quiet

BEGIN
{
	printf("%14s %-16s %-8s %-2s %10s %8s %10s\n", "TIME (US)", "PROGRAM", "DISK", "", "SECTOR", "BYTES", "US");
}

io:::start
{
	request_at[args[0]->b_edev, args[0]->b_blkno, args[0]->b_flags & B_READ] = timestamp;
	request_by[args[0]->b_edev, args[0]->b_blkno, args[0]->b_flags & B_READ] = execname;
}

io:::done
/request_at[args[0]->b_edev, args[0]->b_blkno, args[0]->b_flags & B_READ]/
{
	this->way = args[0]->b_flags & B_READ;
	this->began = request_at[args[0]->b_edev, args[0]->b_blkno, this->way];
	printf("%14d %-16s %-8s %-2s ", timestamp / 1000, request_by[args[0]->b_edev, args[0]->b_blkno, this->way],
	    args[1]->dev_statname, this->way ? "R" : "W");
	printf("%10d %8d %10d\n", args[0]->b_blkno, args[0]->b_bcount, (timestamp - this->began) / 1000);
	request_at[args[0]->b_edev, args[0]->b_blkno, this->way] = 0;
}
