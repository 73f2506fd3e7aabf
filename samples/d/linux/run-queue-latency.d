#!/usr/bin/env -S kinst-run -s
/*
 * run-queue-latency.d - how long a task waits for a CPU when it could run, by name.
 *
 * From the moment it comes into a run queue, new or woken, to the one at which a CPU has switched to it.
 *
 * USAGE: kinst-run -s samples/d/linux/run-queue-latency.d VMLINUX --initrd FILE --console /dev/null
 */

#pragma D option quiet

sched:::enqueue
/args[0]->pr_lwpid != tid/
{
	queued[args[0]->pr_lwpid] = timestamp;
}

sched:::on-cpu
/queued[tid]/
{
	@run_queue[execname] = quantize(timestamp - queued[tid]);
	queued[tid] = 0;
}

END
{
	printa("%s (ns)%@d\n", @run_queue);
}
