/* A pointer has no members. */
struct s {
	int a;
};

BEGIN
{
	trace(offsetof(struct s *, a));
}
