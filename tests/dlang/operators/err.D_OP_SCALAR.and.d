/* && takes scalars. */
struct s {
	int a;
};

struct s v;

BEGIN
{
	trace(v && 1);
}
