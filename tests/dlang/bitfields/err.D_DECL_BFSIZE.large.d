/* It fits its type. */
struct bits {
	int a : 33;
};

BEGIN
{
	exit(0);
}
