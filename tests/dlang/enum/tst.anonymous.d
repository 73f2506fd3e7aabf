/* One without a tag defines constants. */
#pragma D option quiet

enum { SMALL = 1, LARGE = 0x7fffffff, LEAST = -2147483647 - 1 };

int sizes[LARGE > 5 ? 3 : 4];

BEGIN
{
	printf("%d %d %d %d\n", SMALL, LARGE, LEAST, sizeof (sizes));
	exit(0);
}
