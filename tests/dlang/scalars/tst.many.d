/* Declarations with several names, stars and initial order. */
#pragma D option quiet

int a, b, *c;
self int d, e;
this short f, g;

BEGIN
{
	a = 1; b = 2; c = (int *)3;
	self->d = 4; self->e = 5;
	this->f = 6; this->g = 7;
	printf("%d %d %p %d %d %d %d\n", a, b, c, self->d, self->e, this->f, this->g);
	printf("%d %d\n", sizeof (c), sizeof (this->g));
	exit(0);
}
