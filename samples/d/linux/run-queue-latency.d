#!/usr/bin/env -S kinst-run -s
/*
 * run-queue-latency.d - how long a task waits for a CPU when it could run, by name.
 *
 * From the moment it comes into a run queue, new or woken, or has to leave the CPU to another one, to the one at which
 * a CPU has switched to it.
 *
 * USAGE: kinst-run -s samples/d/linux/run-queue-latency.d VMLINUX --initrd FILE --console /dev/null
 */

#pragma D option quiet

sched:::enqueue
/args[0]->pr_lwpid != tid/
{
	queued[args[0]->pr_lwpid] = timestamp;
}

sched:::off-cpu
/tid && !curthread->__state/
{
	queued[tid] = timestamp;
}

sched:::on-cpu
/queued[tid]/
{
	this->waited = timestamp - queued[tid];
	@run_queue[execname] = quantize(this->waited);
	@run_queue_waits = count();
	@run_queue_ns = sum(this->waited);
	queued[tid] = 0;
}

END
{
	printa("%s (ns)%@d\n", @run_queue);
	printa("%@d waits, %@d ns\n", @run_queue_waits, @run_queue_ns);
}
