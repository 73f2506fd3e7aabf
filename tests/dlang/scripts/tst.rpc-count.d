/* rpccount.d - calls of each operation, by version. */
/* @options: --console /dev/null */
/* @image: kernel */
#pragma D option quiet

BEGIN
{
	printf("%4s %-10s %6s\n", "VERS", "OPERATION", "CALLS");
}

fbt::rpc_call:entry
{
	@calls[args[1]->version, stringof(args[0]->name)] = count();
}

END
{
	printa("%4d %-10s %@6d\n", @calls);
}
