/* Braces around the input make a body of it, and the output already has one. */
struct in {
	int i;
};

struct out {
	int a;
};

translator struct out { struct in *p }
{
	a = p->i;
};

BEGIN
{
	exit(0);
}
