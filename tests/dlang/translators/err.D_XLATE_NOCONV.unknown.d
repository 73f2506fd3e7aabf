/* A member that the struct does not have. */
struct out {
	int a;
};

struct in {
	int x;
};

translator struct out < struct in *p > {
	a = p->x;
};

BEGIN
{
	trace(xlate <struct out>((struct in *)0).b);
}
