/* Only a nameless one may have none. */
struct bits {
	int a : 0;
};

BEGIN
{
	exit(0);
}
