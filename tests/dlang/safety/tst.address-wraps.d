/* A word that begins before the last address and ends behind it. */
#pragma D option quiet

BEGIN
{
	trace(*(long *)0xfffffffffffffff8);
	exit(1);
}

ERROR
{
	printf("%d %d %x\n", arg2, arg4, arg5);
	exit(0);
}
