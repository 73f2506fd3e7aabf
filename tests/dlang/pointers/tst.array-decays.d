/* An array in memory is the address of its first element. */
#pragma D option quiet

struct s {
	int pad;
	int b[4];
};

BEGIN
{
	this->p = (struct s *)alloca(sizeof (struct s));
	this->p->b[1] = 5;
	this->q = &this->p->b[0];
	printf("%d %d %d\n", this->q[1], *(this->p->b + 1), sizeof (this->p->b));
	exit(0);
}
