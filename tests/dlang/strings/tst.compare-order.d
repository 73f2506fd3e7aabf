/* All six comparisons order bytes as unsigned. */
#pragma D option quiet

BEGIN
{
	printf("%d%d%d\n", "a" < "b", "a" < "aa", "Z" < "a");
	printf("%d%d%d\n", "b" > "a", "abc" >= "abc", "abc" <= "abb");
	printf("%d%d\n", "" < "\1", "\376" < "\377");
	exit(0);
}
