/* It is evaluated where it is used. */
#pragma D option quiet

int n;
inline int twice = n * 2;
inline int more = twice + 1;

BEGIN
{
	n = 5;
	printf("%d %d\n", twice, more);
	n = 7;
	printf("%d %d\n", twice, more);
	exit(0);
}
