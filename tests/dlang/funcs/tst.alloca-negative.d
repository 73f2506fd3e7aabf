/* More than there is: out of scratch space. */
#pragma D option quiet

BEGIN
{
	x = alloca(-1);
	exit(1);
}

ERROR
{
	printf("%d\n", arg4);
	exit(0);
}
