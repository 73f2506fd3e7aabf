/* The words of a type stand in any order. */
#pragma D option quiet

int unsigned a;
long int unsigned b;
int long signed long c;
short unsigned int d;
char unsigned e;

BEGIN
{
	a = -1; b = -1; c = -1; d = -1; e = -1;
	printf("%u %u %d %u %u\n", a, b, c, d, e);
	exit(0);
}
