/* Nor a struct to anything. */
struct s {
	int a;
};

struct s v;

BEGIN
{
	trace((int)v);
}
