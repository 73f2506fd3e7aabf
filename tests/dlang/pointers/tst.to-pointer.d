/* Pointers to pointers. */
#pragma D option quiet

BEGIN
{
	this->v = (int *)alloca(4);
	*this->v = 9;
	this->p = (int **)alloca(8);
	*this->p = this->v;
	this->q = (int ***)alloca(8);
	*this->q = this->p;
	printf("%d %d %d\n", **this->p, ***this->q, (**this->q)[0]);
	***this->q = 10;
	printf("%d\n", *this->v);
	exit(0);
}
