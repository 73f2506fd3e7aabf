/* A destination that is not scratch memory. */
#pragma D option quiet

BEGIN
{
	bcopy(alloca(8), (void *)0x10, 8);
	exit(1);
}

ERROR
{
	printf("%d\n", arg4);
	exit(0);
}
