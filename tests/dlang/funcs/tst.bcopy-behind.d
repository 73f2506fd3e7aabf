/* The destination ends before the copy does. */
#pragma D option quiet

BEGIN
{
	bcopy(alloca(16), alloca(8), 16);
	exit(1);
}

ERROR
{
	printf("%d\n", arg4);
	exit(0);
}
