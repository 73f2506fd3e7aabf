/* There is no text at address 0. */
#pragma D option quiet

BEGIN
{
	trace(cleanpath(NULL));
	exit(1);
}

ERROR
{
	printf("%d\n", arg4);
	exit(0);
}
