#!/usr/bin/env -S kinst-run -s
/*
 * forks.d - processes and threads that are made, by the program that makes them.
 *
 * USAGE: kinst-run -s samples/d/linux/forks.d VMLINUX --initrd FILE --console /dev/null
 */

#pragma D option quiet

proc:::create
{
	@made[execname, "process"] = count();
	@tasks_made = count();
}

proc:::lwp-create
/args[0]->pr_lwpid != args[1]->pr_pid/
{
	@made[execname, "thread"] = count();
	@tasks_made = count();
}

END
{
	printf("%-16s %-8s %8s\n", "BY", "KIND", "MADE");
	printa("%-16s %-8s %@8d\n", @made);
	printa("%@d tasks were made\n", @tasks_made);
}
