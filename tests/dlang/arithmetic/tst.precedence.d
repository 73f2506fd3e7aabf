/* Multiplication before addition, shifts after both; the same level from the left. */
#pragma D option quiet

BEGIN
{
	printf("%d %d %d\n", 2 + 3 * 4, (2 + 3) * 4, 2 * 3 + 4);
	printf("%d %d %d\n", 100 / 10 / 5, 100 / (10 / 5), 100 - 10 - 5);
	printf("%d %d\n", 1 << 2 + 1, (1 << 2) + 1);
	printf("%d %d\n", 7 % 4 * 3, 7 * 3 % 4);
	exit(0);
}
