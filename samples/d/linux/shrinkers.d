#!/usr/bin/env -S kinst-run -s
/*
 * shrinkers.d - caches of the kernel that give memory back, and how much they looked at.
 *
 * A shrinker is known by the function that does it.
 *
 * FIELDS:
 *	SCANNED		objects that it was told to look at
 *	FREED		objects that it gave back
 *
 * USAGE: kinst-run -s samples/d/linux/shrinkers.d VMLINUX --initrd FILE --console /dev/null
 */

#pragma D option quiet

sdt:vmscan::mm_shrink_slab_start
{
	self->shrinker = (uintptr_t)args[0]->scan_objects;
}

fbt::do_shrink_slab:return
/self->shrinker/
{
	@shrinks[func(self->shrinker)] = count();
	@shrunk[func(self->shrinker)] = sum((int64_t)arg1 > 0 ? arg1 : 0);
	@all_shrunk = sum((int64_t)arg1 > 0 ? arg1 : 0);
	self->shrinker = 0;
}

END
{
	printf("%-48s %8s %10s\n", "SHRINKER", "TIMES", "FREED");
	printa("%-48A %@8d %@10d\n", @shrinks, @shrunk);
	printa("%@d objects were freed\n", @all_shrunk);
}
