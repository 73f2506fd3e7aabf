/* The smallest number, divided by -1, stays what it is. */
#pragma D option quiet

int64_t least;

BEGIN
{
	least = 1;
	least <<= 63;
	printf("%d %d\n", least / -1, least % -1);
	exit(0);
}
