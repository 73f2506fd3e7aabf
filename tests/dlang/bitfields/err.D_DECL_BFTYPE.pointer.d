/* No pointer. */
struct bits {
	int *a : 3;
};

BEGIN
{
	exit(0);
}
