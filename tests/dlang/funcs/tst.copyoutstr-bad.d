/* An address at which there is nothing. */
/* @options: -w */
#pragma D option quiet

BEGIN
{
	copyoutstr("abc", 0x10, 4);
	exit(1);
}

ERROR
{
	printf("%d\n", arg4);
	exit(0);
}
