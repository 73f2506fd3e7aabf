/* There is one way from one type to another. */
struct out {
	int a;
};

struct in {
	int x;
};

translator struct out < struct in *p > {
	a = p->x;
};

translator struct out < struct in *q > {
	a = q->x + 1;
};

BEGIN
{
	exit(0);
}
