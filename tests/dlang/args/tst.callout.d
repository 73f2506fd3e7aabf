/*
 * A static probe's argument has the type it was declared with; its function's name comes from the symbol table.
 * @image: kernel
 * @options: --console /dev/null
 */
#pragma D option quiet

callout_execute:::callout_start
{
	@calls[func((uintptr_t)args[0]->c_func)] = count();
}

fbt::clock_report:entry
{
	printa("%a %@d\n", @calls);
	exit(0);
}
