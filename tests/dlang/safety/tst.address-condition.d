/* In the condition of ?:. */
#pragma D option quiet

BEGIN
{
	trace(*(int *)0x1000 ? 1 : 2);
	exit(1);
}

ERROR
{
	printf("%d %d %x\n", arg2, arg4, arg5);
	exit(0);
}
