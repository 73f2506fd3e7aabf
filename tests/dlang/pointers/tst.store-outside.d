/* Clauses write their own memory only. */
#pragma D option quiet

BEGIN
{
	this->p = (int *)0x1000;
	*this->p = 5;
}

ERROR
{
	printf("%d %x\n", arg4, arg5);
	exit(0);
}
