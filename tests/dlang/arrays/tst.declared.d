/* C arrays of the program are there and zero. */
#pragma D option quiet

int a[5];
char c[10];

BEGIN
{
	a[0] = 10;
	a[4] = 14;
	printf("%d %d %d\n", a[0], a[1], a[4]);
	printf("%d %d\n", sizeof (a), sizeof (c));
	a[4] += a[0];
	a[a[1]]++;
	printf("%d %d\n", a[4], a[0]);
	exit(0);
}
