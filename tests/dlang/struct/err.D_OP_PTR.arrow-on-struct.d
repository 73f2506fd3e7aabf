/* A struct's members are behind a dot. */
struct s {
	int a;
};

struct s v;

BEGIN
{
	trace(v->a);
}
