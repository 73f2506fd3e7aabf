/* Division by a variable that is zero. */
#pragma D option quiet

int zero;

BEGIN
{
	trace(10 / zero);
	exit(1);
}

ERROR
{
	printf("%d %d %x\n", arg2, arg4, arg5);
	exit(0);
}
