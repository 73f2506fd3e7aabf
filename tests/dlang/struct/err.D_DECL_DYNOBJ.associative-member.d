/* A member is no associative array. */
struct s {
	int a[string];
};

BEGIN
{
	exit(0);
}
