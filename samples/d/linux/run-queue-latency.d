#!/usr/bin/env -S kinst-run -s
/*
 * run-queue-latency.d - how long a task waits for a CPU when it could run, by name.
 *
 * From the moment it is woken to the one at which a CPU has switched to it.
 *
 * USAGE: kinst-run -s samples/d/linux/run-queue-latency.d VMLINUX --initrd FILE --console /dev/null
 */

#pragma D option quiet

fbt::try_to_wake_up:entry
/!woken[arg0]/
{
	woken[arg0] = timestamp;
}

fbt::finish_task_switch*:entry
/woken[(uint64_t)curthread]/
{
	@run_queue[execname] = quantize(timestamp - woken[(uint64_t)curthread]);
	woken[(uint64_t)curthread] = 0;
}

END
{
	printa("%s (ns)%@d\n", @run_queue);
}
