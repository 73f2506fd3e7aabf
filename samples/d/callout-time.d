#!/usr/bin/env -S kinst-run -s
/*
 * callout-time.d - time in each callout function, every 5 ms.
 *
 * The kernel's timer interrupt runs the functions that are due: callouts. callout_execute() has a static probe before
 * and after the call. What runs in a tick adds up in the aggregations, is printed, and starts at zero again.
 *
 * USAGE: kinst-run -s samples/d/callout-time.d IMAGE --console /dev/null
 *
 * FIELDS:
 *	FUNCTION	the callout function
 *	CALLS		calls in the last 5 ms
 *	NS		time in it, in ns
 */

#pragma D option quiet

BEGIN
{
	boot = timestamp;
}

callout_execute:::callout_start
{
	self->func = (uintptr_t)args[0]->c_func;
	self->start = timestamp;
}

callout_execute:::callout_end
/self->start/
{
	@calls[func(self->func)] = count();
	@time[func(self->func)] = sum(timestamp - self->start);
	self->func = 0;
	self->start = 0;
}

tick-5ms, END
{
	printf("%d us\n%-32s %7s %9s\n", (timestamp - boot) / 1000, "FUNCTION", "CALLS", "NS");
	printa("%-32a %@7d %@9d\n", @calls, @time);
	clear(@calls);
	clear(@time);
}
