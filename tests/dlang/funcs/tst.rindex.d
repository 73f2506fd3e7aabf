/* Where a text begins last, at a position or before it. */
#pragma D option quiet

BEGIN
{
	printf("%d\n", rindex("Barbara", "a"));
	printf("%d\n", rindex("Barbara", "a", 5));
	printf("%d\n", rindex("Barbara", "a", 3));
	printf("%d\n", rindex("Barbara", "Bar"));
	printf("%d\n", rindex("Barbara", "bar", 2));
	printf("%d\n", rindex("Barbara", "ra", 100));
	printf("%d\n", rindex("Barbara", "x"));
	printf("%d\n", rindex("a", "ab"));
	exit(0);
}
