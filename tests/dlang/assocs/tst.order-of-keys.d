/* Keys are compared whole: ("ab", "c") is not ("a", "bc"). */
#pragma D option quiet

BEGIN
{
	a["ab", "c"] = 1;
	a["a", "bc"] = 2;
	a["", "abc"] = 3;
	printf("%d %d %d %d\n", a["ab", "c"], a["a", "bc"], a["", "abc"], a["abc", ""]);
	exit(0);
}
