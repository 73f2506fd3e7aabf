/* In an assignment. */
#pragma D option quiet

BEGIN
{
	x = *(long *)0x1008;
	exit(1);
}

ERROR
{
	printf("%d %d %x\n", arg2, arg4, arg5);
	exit(0);
}
