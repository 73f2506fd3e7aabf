/* A struct has members. */
struct s {
};

BEGIN
{
	exit(0);
}
