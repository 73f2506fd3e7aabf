/* Writes by owner, and how far files grow: maxima of a member. */
/* @options: --console /dev/null */
/* @image: kernel */
#pragma D option quiet

fbt::vfs_write:entry
/args[0]->v_attr.va_uid >= 1000/
{
	@owners[args[0]->v_attr.va_uid] = count();
	@sizes = max(args[1] + args[3]);
}

END
{
	printa("uid %d: %@d writes\n", @owners);
	printa("at most %@d bytes\n", @sizes);
}
