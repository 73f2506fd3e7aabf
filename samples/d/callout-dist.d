#!/usr/bin/env -S kinst-run -s
/*
 * callout-dist.d - how long callout functions take, as a distribution for each.
 *
 * A sum hides the one call that took ten times as long: quantize() counts calls by powers of two of their time. Most
 * of if_sample's calls are alike; if_poll's grow with the number and size of the packets it makes.
 *
 * USAGE: kinst-run -s samples/d/callout-dist.d IMAGE --console /dev/null
 */

#pragma D option quiet

callout_execute:::callout_start
{
	self->start = timestamp;
}

callout_execute:::callout_end
/self->start/
{
	@[func((uintptr_t)args[0]->c_func)] = quantize(timestamp - self->start);
	self->start = 0;
}

END
{
	printf("time in callout functions, ns\n");
	printa("%a%@d\n", @);
}
