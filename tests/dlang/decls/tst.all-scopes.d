/* Declarations of every scope, used before anything is assigned. */
#pragma D option quiet

int g;
self int s;
this int t;
string gs;
self string ss;
this string ts;
int ga[int];
self string sa[string, int];

BEGIN
{
	printf("%d %d [%s] %d %d %d\n", g, self->s, gs, self->ss == NULL, ga[1], self->sa["a", 1] == NULL);
	this->t = 5;
	this->ts = "five";
	printf("%d %s\n", this->t, this->ts);
	exit(0);
}
