#!/usr/bin/env -S kinst-run -s
/*
 * slow-initcalls.d - what the kernel's start waits for: initcalls that take long.
 *
 * The argument is the time in us from which on an initcall is shown, 1000 if there is none.
 *
 * USAGE: kinst-run -s samples/d/linux/slow-initcalls.d VMLINUX [US] --initrd FILE --console /dev/null
 */

#pragma D option quiet
#pragma D option defaultargs

fbt::do_one_initcall:entry
{
	self->initcall = arg0;
	self->initcall_at = timestamp;
}

fbt::do_one_initcall:return
/self->initcall_at/
{
	this->us = (timestamp - self->initcall_at) / 1000;
	self->initcall_at = 0;
	@initcalls = count();
	@initcall_us = sum(this->us);
}

fbt::do_one_initcall:return
/this->us >= ($1 ? $1 : 1000)/
{
	printf("%8d us  %a\n", this->us, self->initcall);
}

END
{
	printa("%@d initcalls took %@d us\n", @initcalls, @initcall_us);
}
