#!/usr/bin/env -S kinst-run -s
/*
 * syscall-latency.d - how long system calls take, by program and call.
 *
 * A call that waits, as read() of a terminal does, takes as long as it waits.
 *
 * FIELDS:
 *	CALLS		calls that returned
 *	AVG, MAX	time of a call, in us
 *
 * USAGE: kinst-run -s samples/d/linux/syscall-latency.d VMLINUX --initrd FILE --console /dev/null
 */

#pragma D option quiet

syscall:::entry
{
	self->called[probefunc] = timestamp;
}

syscall:::return
/self->called[probefunc]/
{
	this->taken = (timestamp - self->called[probefunc]) / 1000;
	self->called[probefunc] = 0;
	@returned[execname, probefunc] = count();
	@average_call[execname, probefunc] = avg(this->taken);
	@longest_call[execname, probefunc] = max(this->taken);
}

END
{
	printf("%-16s %-24s %8s %9s %9s\n", "PROGRAM", "CALL", "CALLS", "AVG", "MAX");
	setopt("aggsortpos", "2");
	printa("%-16s %-24s %@8d %@9d %@9d\n", @returned, @average_call, @longest_call);
	setopt("aggsortpos", "0");
}
