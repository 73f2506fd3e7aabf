/* In a key of an array. */
#pragma D option quiet

BEGIN
{
	x[*(int *)0x1000, "a"] = 1;
	exit(1);
}

ERROR
{
	printf("%d %d %x\n", arg2, arg4, arg5);
	exit(0);
}
