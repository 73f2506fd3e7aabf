/* Its size may be computed from constants and inlines. */
#pragma D option quiet

inline int N = 4;
enum { M = 3 };
int a[N * 2 + 1];
char b[M];
short c[sizeof (long)];

BEGIN
{
	printf("%d %d %d\n", sizeof (a), sizeof (b), sizeof (c));
	exit(0);
}
