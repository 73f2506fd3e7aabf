/* Its expressions know the input and what is global. */
struct out {
	int a;
};

struct in {
	int x;
};

translator struct out < struct in *p > {
	a = q->x;
};

BEGIN
{
	exit(0);
}
