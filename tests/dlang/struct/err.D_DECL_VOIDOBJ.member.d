/* A member is not void. */
struct s {
	void nothing;
};

BEGIN
{
	exit(0);
}
