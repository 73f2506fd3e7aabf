/* Nor is the input in parentheses: they are no body. */
struct in {
	int i;
};

struct out {
	int a;
};

translator struct out (struct in *p)
{
	a = p->i;
};

BEGIN
{
	exit(0);
}
