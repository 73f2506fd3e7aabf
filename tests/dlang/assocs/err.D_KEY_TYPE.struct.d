/* A struct is no key. */
struct s {
	int a;
};

struct s v;

BEGIN
{
	a[v] = 1;
}
