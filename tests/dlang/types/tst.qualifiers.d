/* const and volatile may stand anywhere among them. */
#pragma D option quiet

const int a;
int const volatile b;
const char *c;

BEGIN
{
	printf("%d %d %d\n", sizeof (a), sizeof (b), sizeof (c));
	printf("%d\n", sizeof (const unsigned short));
	exit(0);
}
