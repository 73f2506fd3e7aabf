/* Bytes at a bad address. */
#pragma D option quiet

BEGIN
{
	tracemem(0x1000, 16);
	exit(1);
}

ERROR
{
	printf("%d %d %x\n", arg2, arg4, arg5);
	exit(0);
}
