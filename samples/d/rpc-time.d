#!/usr/bin/env -S kinst-run -s
/*
 * rpc-time.d - calls of each function of the RPC layer, and time in them.
 *
 * No probe is named: every function that begins with rpc_ is measured, by its entry and return. rpc_dispatch and
 * rpc_read_v2 end in tail calls, jumps to the next function: they return when that has returned, and their time includes
 * it. The start of a call is kept by function, since rpc_call has the handlers inside it.
 *
 * USAGE: kinst-run -s samples/d/rpc-time.d IMAGE --console /dev/null
 *
 * FIELDS:
 *	CALLS		how often it was called
 *	AVG, MAX	time of a call, in ns; interrupts that came in between are part of it
 *	TOTAL		time of all calls, in ns
 */

#pragma D option quiet

fbt::rpc_*:entry
{
	self->start[probefunc] = timestamp;
}

fbt::rpc_*:return
/self->start[probefunc]/
{
	this->elapsed = timestamp - self->start[probefunc];
	self->start[probefunc] = 0;
	@calls[probefunc] = count();
	@average[probefunc] = avg(this->elapsed);
	@longest[probefunc] = max(this->elapsed);
	@total[probefunc] = sum(this->elapsed);
}

END
{
	printf("%-16s %7s %9s %9s %9s\n", "FUNCTION", "CALLS", "AVG", "MAX", "TOTAL");
	setopt("aggsortpos", "3");
	printa("%-16s %@7d %@9d %@9d %@9d\n", @calls, @average, @longest, @total);
}
