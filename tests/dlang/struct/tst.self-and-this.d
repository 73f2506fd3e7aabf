/* Structs in every scope, and as elements of associative arrays. */
#pragma D option quiet

struct pair {
	int a;
	int b;
};

self struct pair s;
this struct pair t;
struct pair g[string];

BEGIN
{
	self->s.a = 1;
	self->s.b = 2;
	this->t.a = self->s.b + 1;
	this->t.b = 4;
	g["x"].a = 5;
	g["x"].b = 6;
	g["y"].a = 7;
	printf("%d %d %d %d %d %d %d %d\n", self->s.a, self->s.b, this->t.a, this->t.b,
	    g["x"].a, g["x"].b, g["y"].a, g["y"].b);
	exit(0);
}
