/* As if in parentheses. */
#pragma D option quiet

inline int total = 2 + 3;

BEGIN
{
	printf("%d %d\n", total * 2, -total);
	exit(0);
}
