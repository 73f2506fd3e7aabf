/* What was not allocated is not there. */
#pragma D option quiet

BEGIN
{
	this->p = (char *)alloca(8);
	this->p[4096] = 1;
}

ERROR
{
	printf("%d\n", arg4);
	exit(0);
}
