/* Pointers of threads, of clauses and of bcopy's target. */
#pragma D option quiet

self int *mine;

BEGIN
{
	self->mine = (int *)alloca(8);
	self->mine[0] = 3;
	self->mine[1] = 4;
	this->to = (int *)alloca(8);
	bcopy(self->mine, this->to, 8);
	this->to[0] *= 10;
	*(this->to + 1) -= 1;
	printf("%d %d\n", this->to[0], this->to[1]);
	exit(0);
}
