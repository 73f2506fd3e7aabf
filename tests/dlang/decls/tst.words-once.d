/* Each once, in any order, long twice. */
#pragma D option quiet

unsigned long int long a;
short signed int b;
long unsigned c;

BEGIN
{
	printf("%d %d %d\n", sizeof (a), sizeof (b), sizeof (c));
	exit(0);
}
