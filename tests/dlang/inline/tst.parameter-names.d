/* A parameter hides a variable of its name. */
#pragma D option quiet

inline int same[int x] = x + 1;

BEGIN
{
	x = 100;
	printf("%d %d\n", same[5], same[x]);
	exit(0);
}
