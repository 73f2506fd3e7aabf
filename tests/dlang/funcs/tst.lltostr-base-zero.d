/* There is no such base: an illegal operation. */
#pragma D option quiet

BEGIN
{
	trace(lltostr(5, 0));
	exit(1);
}

ERROR
{
	printf("%d\n", arg4);
	exit(0);
}
