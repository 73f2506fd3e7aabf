/* Its size is positive. */
struct bits {
	int a : -3;
};

BEGIN
{
	exit(0);
}
