#!/usr/bin/env -S kinst-run -s
/*
 * oomkill.d - programs that are killed because there is no memory.
 *
 * USAGE: kinst-run -s samples/d/linux/oomkill.d VMLINUX --initrd FILE --console /dev/null
 */

#pragma D option quiet

fbt::oom_kill_process:entry
{
	this->victim = args[0]->chosen;
	printf("%s (%d) needs memory: kills %s (%d), ", execname, pid, stringof(this->victim->comm), this->victim->tgid);
	printf("of %d pages, because of: %s\n", args[0]->totalpages, stringof(args[1]));
	@oom_kills = count();
}

END
{
	printa("%@d programs were killed\n", @oom_kills);
}
