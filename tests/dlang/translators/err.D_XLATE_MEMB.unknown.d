/* A member that the output does not have. */
struct out {
	int a;
};

struct in {
	int x;
};

translator struct out < struct in *p > {
	b = p->x;
};

BEGIN
{
	exit(0);
}
