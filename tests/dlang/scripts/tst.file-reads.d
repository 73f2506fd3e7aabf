/* Reads by file: the name is an array in the file's struct, the kind an enumeration. */
/* @options: --console /dev/null */
/* @image: kernel */
#pragma D option quiet

fbt::vfs_read:entry
{
	@reads[args[0]->v_attr.va_type == VDIR ? "directory" : "file", args[0]->v_name] = count();
}

END
{
	printa("%-10s %-12s %@4d\n", @reads);
}
