/* There is no such base: an illegal operation. */
#pragma D option quiet

BEGIN
{
	trace(strtoll("5", -10));
	exit(1);
}

ERROR
{
	printf("%d\n", arg4);
	exit(0);
}
