/* sizeof looks at types and evaluates nothing. */
#pragma D option quiet

BEGIN
{
	x = 1;
	printf("%d %d %d\n", sizeof (x), sizeof x, sizeof (x + 1L));
	printf("%d\n", sizeof (x++));
	printf("%d\n", x);
	zero = 0;
	printf("%d\n", sizeof (1L / zero));
	exit(0);
}
