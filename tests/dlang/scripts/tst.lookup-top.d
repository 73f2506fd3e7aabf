/* topfiles.d - the five names that are looked up most. */
/* @options: --console /dev/null */
/* @image: kernel */
#pragma D option quiet

fbt::vfs_lookup:entry
{
	@[basename(copyinstr(arg0))] = count();
}

END
{
	trunc(@, 5);
	printa("%@5d %s\n", @);
}
