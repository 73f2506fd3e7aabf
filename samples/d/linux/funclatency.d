#!/usr/bin/env -S kinst-run -s
/*
 * funclatency.d - how long functions of the kernel take, those of a name or a pattern.
 *
 * From the entry to the return of the same call, what it calls and waits for included. A function that calls itself is
 * measured by its outermost call.
 *
 * USAGE: kinst-run -s samples/d/linux/funclatency.d VMLINUX FUNCTION --initrd FILE --console /dev/null
 */

#pragma D option quiet

fbt::$1:entry
{
	self->depth[probefunc]++;
}

fbt::$1:entry
/self->depth[probefunc] == 1/
{
	self->entered[probefunc] = timestamp;
}

fbt::$1:return
/self->depth[probefunc] && --self->depth[probefunc] == 0/
{
	@taken_ns[probefunc] = quantize(timestamp - self->entered[probefunc]);
	@left[probefunc] = count();
	self->entered[probefunc] = 0;
}

END
{
	printa("%s (ns)%@d\n", @taken_ns);
	printa("%s: %@d calls\n", @left);
}
