#!/usr/bin/env -S kinst-run -s
/*
 * exitsnoop.d - programs as they end: how long they lived, and why they ended.
 *
 * A program that was there before the script began has no age, which is shown as -1.
 *
 * FIELDS:
 *	MS		age in ms
 *	HOW		exit: it ended itself; killed, core: by a signal
 *	STATUS		exit status, or number of the signal
 *
 * USAGE: kinst-run -s samples/d/linux/exitsnoop.d VMLINUX --initrd FILE --console /dev/null
 */

#pragma D option quiet

BEGIN
{
	how[1] = "exit";
	how[2] = "killed";
	how[3] = "core";
	printf("%6s %6s %-16s %10s %-6s %6s\n", "PID", "PPID", "PROGRAM", "MS", "HOW", "STATUS");
}

proc:::lwp-start
{
	self->born = timestamp;
}

proc:::exit
{
	this->status = args[0] == 1 ? curthread->exit_code >> 8 & 0xff : curthread->exit_code & 0x7f;
	this->age = self->born ? (int64_t)(timestamp - self->born) / 1000000 : -1;
	printf("%6d %6d %-16s %10d %-6s %6d\n", pid, ppid, execname, this->age, how[args[0]], this->status);
	@ended = count();
	self->born = 0;
}

END
{
	printa("%@d programs ended\n", @ended);
}
