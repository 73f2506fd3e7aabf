/* A declared variable is zero, or the empty string. */
#pragma D option quiet

int i;
long long l;
string s;
char c;
self int t;
self string u;
int *p;

BEGIN
{
	printf("%d %d [%s] %d %d [%s] %p\n", i, l, s, c, self->t, self->u, p);
	exit(0);
}
