#!/usr/bin/env -S kinst-run -s
/*
 * funccount.d - how often functions of the kernel are called, those of a name or a pattern.
 *
 * Functions that are not called are not shown. The argument may have * and ?, in quotes.
 *
 * USAGE: kinst-run -s samples/d/linux/funccount.d VMLINUX FUNCTION --initrd FILE --console /dev/null
 */

#pragma D option quiet

fbt::$1:entry
{
	@called[probefunc] = count();
}

END
{
	printf("%-48s %10s\n", "FUNCTION", "CALLS");
	printa("%-48s %@10d\n", @called);
}
