/* A text of a function. */
#pragma D option quiet

BEGIN
{
	trace(strlen((char *)0x1000));
	exit(1);
}

ERROR
{
	printf("%d %d %x\n", arg2, arg4, arg5);
	exit(0);
}
