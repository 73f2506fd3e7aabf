/* In the second action: the first one's record is gone too. */
#pragma D option quiet

BEGIN
{
	printf("never seen\n"); trace(*(int *)0x1000);
	exit(1);
}

ERROR
{
	printf("%d %d %x\n", arg2, arg4, arg5);
	exit(0);
}
