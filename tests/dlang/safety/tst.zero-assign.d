/* And with an assignment. */
#pragma D option quiet

int zero;

BEGIN
{
	x = 5; x /= zero;
	exit(1);
}

ERROR
{
	printf("%d %d %x\n", arg2, arg4, arg5);
	exit(0);
}
