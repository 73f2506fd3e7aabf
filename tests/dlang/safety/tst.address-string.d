/* A text at a bad address. */
#pragma D option quiet

BEGIN
{
	trace(stringof((char *)0x1001));
	exit(1);
}

ERROR
{
	printf("%d %d %x\n", arg2, arg4, arg5);
	exit(0);
}
