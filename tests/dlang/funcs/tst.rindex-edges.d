/* The edges as Perl has them: before the start only nothing is found, and that at 0. */
#pragma D option quiet

BEGIN
{
	printf("%d\n", rindex("abc", ""));
	printf("%d\n", rindex("abc", "", 10));
	printf("%d\n", rindex("abc", "", 1));
	printf("%d\n", rindex("abc", "", 0));
	printf("%d\n", rindex("abc", "", -1));
	printf("%d\n", rindex("abc", "a", -1));
	printf("%d\n", rindex("abc", "a", 0));
	printf("%d\n", rindex("", ""));
	printf("%d\n", rindex("", "", 7));
	exit(0);
}
