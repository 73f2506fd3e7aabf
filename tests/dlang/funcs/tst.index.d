/* Where a text begins in another, from a position on. */
#pragma D option quiet

BEGIN
{
	printf("%d\n", index("Barbara", "Bar"));
	printf("%d\n", index("Barbara", "bar"));
	printf("%d\n", index("Barbara", "ra", 3));
	printf("%d\n", index("Barbara", "ara", 4));
	printf("%d\n", index("Barbara", "ara", 5));
	printf("%d\n", index("Barbara", "x"));
	printf("%d\n", index("", "a"));
	printf("%d\n", index("a", "ab"));
	printf("%d\n", index("Barbara", "B", 6));
	exit(0);
}
