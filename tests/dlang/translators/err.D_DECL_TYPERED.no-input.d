/* A translator has an input. Without one, its output is a struct that is declared again, whatever comes in it. */
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
