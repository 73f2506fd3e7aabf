#!/usr/bin/env -S kinst-run -s
/*
 * timers.d - high-resolution timers: how late they expire, by the function that they call.
 *
 * From the time that was asked for to the call, in ns of the kernel's clock.
 *
 * USAGE: kinst-run -s samples/d/linux/timers.d VMLINUX --initrd FILE --console /dev/null
 */

#pragma D option quiet

sdt:timer::hrtimer_expire_entry
{
	@late[func((uintptr_t)args[0]->function)] = quantize(*args[1] - args[0]->node.expires);
	@expired = count();
}

END
{
	printa("%A late by (ns)%@d\n", @late);
	printa("%@d timers expired\n", @expired);
}
