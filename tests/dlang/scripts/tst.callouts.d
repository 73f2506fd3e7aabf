/* Which functions the clock calls, by pointers in structs. */
/* @options: --console /dev/null */
/* @image: kernel */
#pragma D option quiet

fbt::callout_execute:entry
{
	@[func((uintptr_t)args[0]->c_func)] = count();
	@arg[args[0]->c_arg == 0 ? "without argument" : "with argument"] = count();
}

END
{
	printa("%a %@d\n", @);
	printa("%s %@d\n", @arg);
}
