/* A member that is not translated. */
struct out {
	int a;
	int b;
};

struct in {
	int x;
};

translator struct out < struct in *p > {
	b = p->x;
};

BEGIN
{
	trace(xlate <struct out>((struct in *)0).a);
}
