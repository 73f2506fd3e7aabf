/* Far behind an array. */
#pragma D option quiet

BEGIN
{
	this->p = (int *)0x1000;
}

BEGIN
{
	trace(this->p[1 << 30]);
	exit(1);
}

ERROR
{
	printf("%d %d %x\n", arg2, arg4, arg5);
	exit(0);
}
