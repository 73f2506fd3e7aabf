/* Strings compare byte by byte; a prefix is less. */
#pragma D option quiet

BEGIN
{
	a = "abc";
	b = "abd";
	printf("%d%d%d%d%d%d\n", a == b, a != b, a < b, a <= b, a > b, a >= b);
	printf("%d%d%d%d%d%d\n", a == "abc", a != "abc", a < "abc", a <= "abc", a > "abc", a >= "abc");
	printf("%d %d %d\n", "ab" < a, "" < "a", "B" < "a");
	printf("%d\n", "\377" > "a");
	exit(0);
}
