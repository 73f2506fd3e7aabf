/* Arguments are expressions, in order. */
#pragma D option quiet

BEGIN
{
	i = 1;
	printf("%d %d %d %d\n", i++, i++, i, ++i);
	printf("%d %s %d\n", i > 3, i == 4 ? "four" : "other", sizeof (long));
	printf("%d\n", (1, 2, 3));
	exit(0);
}
