#!/usr/bin/env -S kinst-run -s
/*
 * wakeups.d - who wakes whom: the stack of the one that wakes, and the one on which the other had waited.
 *
 * The first table has who woke whom and where; the second one what the woken task had waited in, and how long: from
 * when it left the CPU to when it was back. The argument is the number of rows of each, those with most come last.
 *
 * USAGE: kinst-run -s samples/d/linux/wakeups.d VMLINUX [STACKS] --initrd FILE --console /dev/null
 */

#pragma D option quiet
#pragma D option defaultargs

sched:::wakeup
{
	@wakeups[execname, args[1]->pr_fname, stack()] = count();
	@all_wakeups = count();
	waker[args[0]->pr_lwpid] = execname;
}

sched:::off-cpu
{
	self->waits = timestamp;
}

sched:::on-cpu
/self->waits && waker[tid] != ""/
{
	@waits[waker[tid], execname, stack()] = sum((timestamp - self->waits) / 1000);
	waker[tid] = 0;
}

sched:::on-cpu
{
	self->waits = 0;
}

END
{
	trunc(@wakeups, $1 ? $1 : 10);
	trunc(@waits, $1 ? $1 : 10);
	printa("%s wakes %s%k%@16d times\n", @wakeups);
	printa("%@d wakeups in all\n", @all_wakeups);
	printa("%s had woken %s, which waited in%k%@16d us\n", @waits);
}
