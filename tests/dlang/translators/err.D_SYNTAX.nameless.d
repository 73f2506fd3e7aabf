/* The input has a name. */
struct out {
	int a;
};

translator struct out < int > {
	a = 1;
};

BEGIN
{
	exit(0);
}
