/* Before memory of one's own. */
#pragma D option quiet

BEGIN
{
	this->p = (char *)alloca(16);
	trace(this->p[-1]);
	exit(1);
}

ERROR
{
	printf("%d\n", arg4);
	exit(0);
}
