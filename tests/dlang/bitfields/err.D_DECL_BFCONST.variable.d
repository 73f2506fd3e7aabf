/* It is a constant. */
int n;

struct bits {
	int a : n;
};

BEGIN
{
	exit(0);
}
