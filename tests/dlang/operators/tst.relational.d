/* == != < <= > >= */
#pragma D option quiet

BEGIN
{
	a = 3;
	b = 4;
	printf("%d%d%d%d%d%d\n", a == b, a != b, a < b, a <= b, a > b, a >= b);
	printf("%d%d%d%d%d%d\n", a == a, a != a, a < a, a <= a, a > a, a >= a);
	printf("%d%d\n", -1 < 0, (int64_t)-1 < (int64_t)0);
	printf("%d%d%d\n", 1 < 2 < 3, 3 > 2 > 1, 3 == 3 == 1);
	exit(0);
}
