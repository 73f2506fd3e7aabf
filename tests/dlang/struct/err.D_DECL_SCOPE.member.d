/* A member's name has no module. */
struct s {
	int kernel`a;
};

BEGIN
{
	exit(0);
}
