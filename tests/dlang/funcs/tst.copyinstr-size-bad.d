/* An address at which there is nothing. */
#pragma D option quiet

BEGIN
{
	copyinstr(0x10, 4);
	exit(1);
}

ERROR
{
	printf("%d %x\n", arg4, arg5);
	exit(0);
}
