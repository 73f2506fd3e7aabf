/* A member's expression has its type. */
struct out {
	int a;
};

struct in {
	int x;
};

translator struct out < struct in *p > {
	a = "text";
};

BEGIN
{
	exit(0);
}
