/* A source that is nowhere. */
#pragma D option quiet

BEGIN
{
	bcopy((void *)0x10, alloca(8), 8);
	exit(1);
}

ERROR
{
	printf("%d\n", arg4);
	exit(0);
}
