/* kinst: the first instruction of a function is executed as often as the function is entered. */
/* @options: --console /dev/null */
/* @image: kernel */
#pragma D option quiet

kinst::vfs_get:0
{
	@n["instruction"] = count();
}

fbt::vfs_get:entry
{
	@n["entry"] = count();
}

END
{
	printa("%s %@d\n", @n);
}
