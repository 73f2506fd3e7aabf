/* Where a number and a word may stand side by side, blanks are not needed: 1:2 of ?:, and an operator's letters. */
#pragma D option quiet

BEGIN
{
	x = 3;
	printf("%d %d %d\n", x?1:2, 12-x, 0x1f&x);
	exit(0);
}
