#!/usr/bin/env -S kinst-run -s
/*
 * off-cpu-stacks.d - where tasks wait: time off the CPU, by program and stack.
 *
 * From the switch to another task until the task runs again. The argument is the number of stacks to print; those that
 * wait longest come last.
 *
 * USAGE: kinst-run -s samples/d/linux/off-cpu-stacks.d VMLINUX [STACKS] --initrd FILE --console /dev/null
 */

#pragma D option quiet
#pragma D option defaultargs

sched:::off-cpu
{
	self->off_cpu = timestamp;
}

sched:::on-cpu
/self->off_cpu/
{
	@off_cpu[execname, stack()] = sum((timestamp - self->off_cpu) / 1000);
	self->off_cpu = 0;
}

END
{
	trunc(@off_cpu, $1 ? $1 : 10);
	printa("%s%k%@16d us\n", @off_cpu);
}
