/* Lookups by directory. */
/* @options: --console /dev/null */
/* @image: kernel */
#pragma D option quiet

fbt::vfs_lookup:entry
{
	@[dirname(stringof(args[0]))] = count();
}

END
{
	printf("%-20s %s\n", "DIRECTORY", "LOOKUPS");
	printa("%-20s %@d\n", @);
}
