/* Without an image there are no processes and nothing to look at: numbers are 0. */
#pragma D option quiet
BEGIN { printf("%d %d %d %d %d %d\n", pid, uid, gid, ppid, errno, ipl); }
BEGIN { printf("%d %d %d %d\n", caller, ucaller, stackdepth, ustackdepth); }
BEGIN { printf("%d %d\n", cpu, curthread == NULL); exit(0); }
