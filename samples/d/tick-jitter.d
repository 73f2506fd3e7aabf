#!/usr/bin/env -S kinst-run -s
/*
 * tick-jitter.d - how evenly the clock ticks, and how long callouts wait for a tick.
 *
 * The timer interrupt calls clock_tick(). It is late when interrupts are off; and inside a critical section it only
 * notes that it came, and the callouts wait for callout_process() at the end of the section.
 *
 * USAGE: kinst-run -s samples/d/tick-jitter.d IMAGE --console /dev/null
 */

#pragma D option quiet

uint64_t last;		/* the time of the last tick */

fbt::clock_tick:entry
/last/
{
	this->interval = timestamp - last;
	@shortest = min(this->interval);
	@average = avg(this->interval);
	@longest = max(this->interval);
}

fbt::clock_tick:entry
{
	last = timestamp;
	@ticks = count();
}

fbt::callout_process:entry
{
	@wait["from a tick to its callouts, ns"] = quantize(timestamp - last);
}

END
{
	printa("%@d ticks\n", @ticks);
	printa("interval, ns: min %@d, avg %@d, max %@d\n\n", @shortest, @average, @longest);
	printa("%s%@d", @wait);
}
