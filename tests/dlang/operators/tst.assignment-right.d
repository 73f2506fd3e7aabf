/* Assignments associate to the right and have the value assigned. */
#pragma D option quiet

BEGIN
{
	a = b = c = 4;
	printf("%d %d %d\n", a, b, c);
	a += b -= c;
	printf("%d %d %d\n", a, b, c);
	printf("%d %d\n", a = 9, a);
	exit(0);
}
