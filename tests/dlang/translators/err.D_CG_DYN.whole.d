/* A translation has no value as a whole. */
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
	xlate <struct out>((struct in *)0);
}
