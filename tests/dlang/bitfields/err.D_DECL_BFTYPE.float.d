/* It is an integer. */
struct bits {
	float a : 3;
};

BEGIN
{
	exit(0);
}
