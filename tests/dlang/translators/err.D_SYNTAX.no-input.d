/* A translator has an input. */
struct out {
	int a;
};

translator struct out {
	a = 1;
};

BEGIN
{
	exit(0);
}
