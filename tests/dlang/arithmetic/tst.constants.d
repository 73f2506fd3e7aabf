/* The same computed at compile time. */
#pragma D option quiet

BEGIN
{
	printf("%d %d %d %d %d\n", 7 + 2, 7 - 2, 7 * 2, 7 / 2, 7 % 2);
	printf("%d %d %d %d\n", -7 / 2, 7 / -2, -7 / -2, -7 % 2);
	printf("%d %d\n", 7 % -2, -7 % -2);
	exit(0);
}
