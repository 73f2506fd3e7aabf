/* Nor members: a struct does not contain itself. */
struct s {
	struct s inner;
};

BEGIN
{
	exit(0);
}
