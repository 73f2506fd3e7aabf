/* Its type is size_t, which is unsigned. */
#pragma D option quiet

BEGIN
{
	printf("%d %d\n", sizeof (sizeof (int)), -1 < sizeof (int));
	printf("%d\n", sizeof (int) - 5 > 0);
	exit(0);
}
