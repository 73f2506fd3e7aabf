/* More than memory for copies. */
#pragma D option quiet

BEGIN
{
	copyin(0x10, 0x7fffffffffffffff);
	exit(1);
}

ERROR
{
	printf("%d\n", arg4);
	exit(0);
}
