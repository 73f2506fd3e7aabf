#!/usr/bin/env -S kinst-run -s
/*
 * execsnoop.d - programs as they are started, with their arguments.
 *
 * The line is printed by the new program, before its first instruction. Its parent is the one that forked.
 *
 * USAGE: kinst-run -s samples/d/linux/execsnoop.d VMLINUX --initrd FILE --console /dev/null
 */

#pragma D option quiet

BEGIN
{
	printf("%6s %6s %-16s %s\n", "PID", "PPID", "PROGRAM", "ARGUMENTS");
}

proc:::exec-success
{
	printf("%6d %6d %-16s %s\n", pid, ppid, execname, execargs);
	@started = count();
}

END
{
	printa("%@d programs were started\n", @started);
}
