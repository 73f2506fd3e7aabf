/* A member has a name. */
struct s {
	int a;
};

BEGIN
{
	trace(offsetof(struct s, 1));
}
