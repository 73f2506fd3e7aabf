/* So is NULL. */
#pragma D option quiet

struct s {
	long a;
	int b;
};

BEGIN
{
	this->p = (struct s *)NULL;
	trace(this->p->b);
}

ERROR
{
	printf("%d %x\n", arg4, arg5);
	exit(0);
}
