/* The last address. */
#pragma D option quiet

BEGIN
{
	trace(*(char *)-1);
	exit(1);
}

ERROR
{
	printf("%d %d %x\n", arg2, arg4, arg5);
	exit(0);
}
