#!/usr/bin/env -S kinst-run -s
/*
 * rpc-operations.d - calls, errors and time of each RPC operation, by version.
 *
 * Needs the provider of samples/providers (pip install samples/providers). Beside rpc-time.d it shows what a provider
 * is good for: rpc:v2:read:done instead of functions, tail calls and an error in a register.
 *
 * USAGE: kinst-run -s samples/d/rpc-operations.d IMAGE --console /dev/null
 *
 * FIELDS:
 *	VERS, OPERATION	the operation
 *	CALLS, ERRORS	how often it was called, and failed
 *	AVG		time of a call, in ns
 */

#pragma D option quiet

rpc:::start
{
	self->start = timestamp;
}

rpc:::done
/self->start/
{
	@calls[probemod, probefunc] = count();
	@errors[probemod, probefunc] = sum(args[1] != 0);
	@average[probemod, probefunc] = avg(timestamp - self->start);
	self->start = 0;
}

END
{
	setopt("aggsortkey");
	printf("%-5s %-10s %7s %7s %9s\n", "VERS", "OPERATION", "CALLS", "ERRORS", "AVG");
	printa("%-5s %-10s %@7d %@7d %@9d\n", @calls, @errors, @average);
}
