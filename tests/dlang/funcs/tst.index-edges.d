/* The edges as Perl has them: a position before the start is the start; nothing is found behind the end but nothing. */
#pragma D option quiet

BEGIN
{
	printf("%d\n", index("abc", "a", -5));
	printf("%d\n", index("abc", "", -1));
	printf("%d\n", index("abc", ""));
	printf("%d\n", index("abc", "", 2));
	printf("%d\n", index("abc", "", 3));
	printf("%d\n", index("abc", "", 10));
	printf("%d\n", index("abc", "c", 3));
	printf("%d\n", index("", ""));
	printf("%d\n", index("", "", 5));
	printf("%d\n", index("", "", -5));
	exit(0);
}
