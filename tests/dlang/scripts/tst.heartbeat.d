/* Several timers, each with its own rate. */
#pragma D option quiet

tick-2s
{
	@["2s"] = count();
}

tick-3s
{
	@["3s"] = count();
}

tick-500ms
{
	@["500ms"] = count();
}

tick-10hz
{
	@["10hz"] = count();
}

tick-6500ms
{
	printa("%-6s %@d\n", @);
	exit(0);
}
