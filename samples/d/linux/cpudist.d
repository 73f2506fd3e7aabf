#!/usr/bin/env -S kinst-run -s
/*
 * cpudist.d - how long tasks stay on a CPU before they leave it, by program.
 *
 * Idle is left out, and so is what is on a CPU when the script begins.
 *
 * USAGE: kinst-run -s samples/d/linux/cpudist.d VMLINUX --initrd FILE --console /dev/null
 */

#pragma D option quiet

sched:::on-cpu
/tid/
{
	self->on_cpu = timestamp;
	@turns = count();
}

sched:::off-cpu
/self->on_cpu/
{
	this->on_cpu = timestamp - self->on_cpu;
	self->on_cpu = 0;
	@on_cpu[execname] = quantize(this->on_cpu / 1000);
	@on_cpu_ns = sum(this->on_cpu);
}

END
{
	printa("%s (us)%@d\n", @on_cpu);
	printa("%@d turns on a CPU, %@d ns\n", @turns, @on_cpu_ns);
}
