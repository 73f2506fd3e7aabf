/* A dozen arguments. */
#pragma D option quiet

BEGIN
{
	printf("%d%d%d%d%d%d%d%d%d%d%s%c\n", 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, "x", 'y');
	exit(0);
}
