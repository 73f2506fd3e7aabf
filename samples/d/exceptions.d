#!/usr/bin/env -S kinst-run -s
/*
 * exceptions.d - each exception as the CPU takes it, and how many there were of each kind.
 *
 * Nothing is patched for this: the machine tells of what it delivers, before the handler begins, so that arg3 is the
 * code that is interrupted. arg1 is the address that could not be accessed, arg2 the syndrome or error code. Interrupts
 * are only counted.
 *
 * USAGE: kinst-run -s samples/d/exceptions.d IMAGE --console /dev/null
 */

#pragma D option quiet

trap:exception::entry
{
	printf("%-24s %-40a %#14x %#x\n", probefunc, arg3, arg1, arg2);
}

trap:::entry
{
	@taken[probemod, probefunc] = count();
}

END
{
	printa("%-12s %-24s %@9d\n", @taken);
}
