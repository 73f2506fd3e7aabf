/* The comma's value is its right side. */
#pragma D option quiet

BEGIN
{
	x = (1, 2, 3);
	y = (x++, x * 2);
	printf("%d %d\n", x, y);
	x = 1, y = 2;
	printf("%d %d\n", x, y);
	exit(0);
}
