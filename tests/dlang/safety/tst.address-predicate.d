/* In a predicate: that is action 0. */
#pragma D option quiet

BEGIN
/1 == *(char *)0x1000/
{
	x = 1;
	exit(1);
}

ERROR
{
	printf("%d %d %x\n", arg2, arg4, arg5);
	exit(0);
}
