/* Declarations stand anywhere outside of clauses. */
#pragma D option quiet

BEGIN
{
	a = 1;
}

int b;
struct s { int m; };
struct s v;

BEGIN
{
	b = a + 1;
	v.m = b + 1;
	printf("%d %d %d\n", a, b, v.m);
}

typedef int t;
t c;

BEGIN
{
	c = v.m + 1;
	printf("%d\n", c);
	exit(0);
}
