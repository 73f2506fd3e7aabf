#!/usr/bin/env -S kinst-run -s
/*
 * filelife.d - files that live for a short time: made and removed while the script runs.
 *
 * USAGE: kinst-run -s samples/d/linux/filelife.d VMLINUX --initrd FILE --console /dev/null
 */

#pragma D option quiet

BEGIN
{
	printf("%-16s %6s %10s %s\n", "REMOVED BY", "PID", "AGE (US)", "FILE");
}

fbt::security_inode_create:entry
{
	file_made[(uintptr_t)args[1]] = timestamp;
}

fbt::security_inode_unlink:entry
/file_made[(uintptr_t)args[1]]/
{
	this->age = (timestamp - file_made[(uintptr_t)args[1]]) / 1000;
	file_made[(uintptr_t)args[1]] = 0;
	printf("%-16s %6d %10d %s\n", execname, pid, this->age, stringof(args[1]->d_name.name));
	@short_lived = count();
}

END
{
	printa("%@d files were made and removed\n", @short_lived);
}
