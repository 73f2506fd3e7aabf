/* A declared variable is zero; a string the empty one, a thread's own NULL. */
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
	printf("%d %d [%s] %d %d %d %p\n", i, l, s, c, self->t, self->u == NULL, p);
	exit(0);
}
