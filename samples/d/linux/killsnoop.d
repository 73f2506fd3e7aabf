#!/usr/bin/env -S kinst-run -s
/*
 * killsnoop.d - signals that are sent, by whom and to whom.
 *
 * Signals of the kernel are shown as those of the program that runs: SIGCHLD is sent by the one that ends.
 *
 * USAGE: kinst-run -s samples/d/linux/killsnoop.d VMLINUX --initrd FILE --console /dev/null
 */

#pragma D option quiet

BEGIN
{
	printf("%6s %-16s %6s %6s %-16s\n", "PID", "PROGRAM", "SIGNAL", "TO", "PROGRAM");
}

proc:::signal-send
{
	printf("%6d %-16s %6d %6d %-16s\n", pid, execname, args[2], args[1]->pr_pid, args[1]->pr_fname);
	@signals[args[2]] = count();
}

END
{
	printf("%6s %8s\n", "SIGNAL", "SENT");
	printa("%6d %@8d\n", @signals);
}
