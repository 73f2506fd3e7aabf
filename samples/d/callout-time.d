/*
 * How long each callout function runs, in ns: a line for each function, printed and cleared four times a millisecond.
 */
#pragma D option quiet

callout_execute:::callout_start
{
	self->start = timestamp;
	this->callout = args[0];
	@calls[func((uintptr_t)this->callout->c_func)] = count();
}

callout_execute:::callout_end
/self->start/
{
	@time[func((uintptr_t)args[0]->c_func)] = sum(timestamp - self->start);
	self->start = 0;
}

tick-250us
{
	printf("%d us\n", (timestamp - start) / 1000);
	printa("%-24a %@5d calls %@10d ns\n", @calls, @time);
	clear(@calls);
	clear(@time);
}

BEGIN
{
	start = timestamp;
}
