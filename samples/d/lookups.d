#!/usr/bin/env -S kinst-run -s
/*
 * lookups.d - paths looked up, with the result and the time: opensnoop for a kernel of your own.
 *
 * A path is a string in the kernel's memory, whose address is an argument: it is read at the entry, while it is sure to
 * be there, and printed at the return, when the result is known.
 *
 * USAGE: kinst-run -s samples/d/lookups.d IMAGE --console /dev/null
 *
 * FIELDS:
 *	COUNT	lookups
 *	NS	the average time of one, in ns
 *	ERR	error number, 0 if the path was found
 *	PATH	the path
 */

#pragma D option quiet

fbt::vfs_lookup:entry
{
	self->path = stringof(args[0]);
	self->start = timestamp;
}

fbt::vfs_lookup:return
/self->start/
{
	@count[args[1], self->path] = count();
	@time[args[1], self->path] = avg(timestamp - self->start);
	self->path = 0;
	self->start = 0;
}

END
{
	setopt("aggsortkey");
	printf("%5s %7s %4s %s\n", "COUNT", "NS", "ERR", "PATH");
	printa("%@5d %@7d %4d %s\n", @count, @time);
}
