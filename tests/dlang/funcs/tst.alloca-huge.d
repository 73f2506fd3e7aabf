/* More than there is: out of scratch space. */
#pragma D option quiet

BEGIN
{
	x = alloca(0x7fffffffffffffff);
	exit(1);
}

ERROR
{
	printf("%d\n", arg4);
	exit(0);
}
