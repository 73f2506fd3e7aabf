/* An address that no processor has. */
#pragma D option quiet

BEGIN
{
	trace(*(char *)0x800000000000);
	exit(1);
}

ERROR
{
	printf("%d %d %x\n", arg2, arg4, arg5);
	exit(0);
}
