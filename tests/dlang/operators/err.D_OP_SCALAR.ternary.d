/* What is asked must be a scalar. */
struct s {
	int a;
};

struct s v;

BEGIN
{
	v.a = 1;
	trace(v ? 1 : 2);
}
