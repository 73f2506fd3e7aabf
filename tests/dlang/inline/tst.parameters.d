/* Inlines with parameters. */
#pragma D option quiet

inline int add[int a, int b] = a + b;
inline int square[int x] = x * x;
inline string choose[int which] = which == 0 ? "zero" : which == 1 ? "one" : "many";

BEGIN
{
	n = 3;
	printf("%d %d %d\n", add[1, 2], square[n + 1], add[square[2], square[n]]);
	printf("%s %s %s\n", choose[0], choose[n - 2], choose[n]);
	exit(0);
}
