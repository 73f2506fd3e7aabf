/* Address 0. */
#pragma D option quiet

BEGIN
{
	trace(*(int *)NULL);
	exit(1);
}

ERROR
{
	printf("%d %d %x\n", arg2, arg4, arg5);
	exit(0);
}
