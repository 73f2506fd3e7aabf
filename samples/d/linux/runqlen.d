#!/usr/bin/env -S kinst-run -s
/*
 * runqlen.d - tasks that can run, on each CPU, 997 times a second: those that wait, and the one that runs.
 *
 * The idle task is on no queue: a CPU's queue is that of the task that ran there before.
 *
 * USAGE: kinst-run -s samples/d/linux/runqlen.d VMLINUX --initrd FILE --console /dev/null
 */

#pragma D option quiet

profile-997
/tid/
{
	run_queue[cpu] = curthread->se.cfs_rq->rq;
}

profile-997
/run_queue[cpu]/
{
	@run_queue_length[cpu] = lquantize(run_queue[cpu]->nr_running, 0, 16, 1);
}

END
{
	printa("CPU %d (tasks)%@d\n", @run_queue_length);
}
