/* Without quiet: a header, then a line for each firing. */

BEGIN
{
	trace("starting");
	trace(42);
	trace((uint64_t)1);
}

tick-1s
{
	printf("tick %d", ++n);
}

tick-1s
/n == 2/
{
	exit(0);
}
