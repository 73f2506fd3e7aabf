/* A script that reports its own errors. */
#pragma D option quiet

BEGIN
{
	*(char *)0x4000;
}

ERROR
{
	printf("fault %s at 0x%x, action %d\n", arg4 == DTRACEFLT_BADADDR ? "bad address" : "other", arg5, arg2);
	errors++;
}

tick-1ms
{
	this->zero = n++;
	x = 10 / this->zero;
	printf("10 / %d = %d\n", this->zero, x);
}

tick-1ms
/n == 3/
{
	printf("%d errors\n", errors);
	exit(0);
}
