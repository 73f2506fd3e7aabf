#!/usr/bin/env -S kinst-run -s
/*
 * dcstat.d - names that are looked up: found in the cache of names or not, by program.
 *
 * Each part of a path is a lookup. A name that the cache does not have is asked of the file system. One for which a
 * lock is needed is looked up again, and counted again.
 *
 * FIELDS:
 *	FOUND		there is such a file
 *	NONE		the cache knows that there is none
 *	SLOW		the cache does not know
 *	AGAIN		to be looked up with locks, or an error
 *
 * USAGE: kinst-run -s samples/d/linux/dcstat.d VMLINUX --initrd FILE --console /dev/null
 */

#pragma D option quiet

fbt::lookup_fast:return
{
	this->is_error = arg1 >= -4095 && arg1 < 0;
	this->found = arg1 && !this->is_error && args[1]->d_inode != NULL;
	@lookups[execname] = count();
	@names_found[execname] = sum(this->found);
	@names_none[execname] = sum(arg1 && !this->is_error && !this->found);
	@names_slow[execname] = sum(!arg1);
	@names_again[execname] = sum(this->is_error);
	@all_lookups = count();
}

END
{
	printf("%-16s %8s %8s %8s %8s %8s\n", "PROGRAM", "LOOKUPS", "FOUND", "NONE", "SLOW", "AGAIN");
	printa("%-16s %@8d %@8d %@8d %@8d %@8d\n", @lookups, @names_found, @names_none, @names_slow, @names_again);
	printa("%@d lookups in all\n", @all_lookups);
}
