/* Time in callouts, by the function's address: starts and ends pair. */
/* @options: --console /dev/null */
/* @image: kernel */
#pragma D option quiet

fbt::callout_execute:entry
{
	self->start = timestamp;
	self->due = args[0]->c_time;
}

fbt::callout_execute:return
/self->start/
{
	@ticks[self->due] = count();
	@busy[timestamp > self->start] = count();
	self->start = 0;
	self->due = 0;
}

END
{
	trunc(@ticks, 3);
	printa("tick %d: %@d callouts\n", @ticks);
	printa("%d %@d\n", @busy);
}
