/* Equality before &, & before ^, ^ before |, then &&, ^^, ||. */
#pragma D option quiet

BEGIN
{
	printf("%d %d\n", 6 & 3 == 3, (6 & 3) == 3);
	printf("%d %d\n", 1 | 2 ^ 3 & 2, 4 ^ 1 | 1);
	printf("%d %d\n", 1 || 0 && 0, (1 || 0) && 0);
	printf("%d %d\n", 1 || 1 ^^ 1, (1 || 1) ^^ 1);
	printf("%d %d\n", 1 ^^ 1 && 0, (1 ^^ 1) && 0);
	printf("%d %d\n", !0 + 1, ~0 + 1);
	printf("%d %d\n", -2 * -3, 2 - -3);
	printf("%d\n", 1 ? 2 : 0 ? 3 : 4);
	printf("%d %d\n", 1 + 1 == 2, 8 >> 1 + 1);
	exit(0);
}
