#!/usr/bin/env -S kinst-run -s
/*
 * malloc-stacks.d - who allocates: bytes asked of kmalloc(), by stack.
 *
 * The stacks with most bytes come last. The argument is the number of stacks to print.
 *
 * USAGE: kinst-run -s samples/d/malloc-stacks.d IMAGE [STACKS] --console /dev/null
 */

#pragma D option quiet
#pragma D option defaultargs

fbt::kmalloc:entry
{
	@bytes[stack()] = sum(arg0);
	@total = sum(arg0);
}

END
{
	trunc(@bytes, $1 ? $1 : 5);
	printa("%k%@16d bytes\n", @bytes);
	printa("\n%@d bytes in all\n", @total);
}
