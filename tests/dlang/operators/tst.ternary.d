/* ?: evaluates one side only and associates to the right. */
#pragma D option quiet

BEGIN
{
	n = 0;
	m = 0;
	x = 1 ? n++ : m++;
	y = n > 1 ? n++ : m++;
	printf("%d %d\n", n, m);
	i = 7;
	printf("%s %s\n", i > 5 ? "big" : "small", i < 5 ? "small" : i < 8 ? "middle" : "large");
	printf("%d\n", i ? i == 7 ? 70 : 71 : 72);
	exit(0);
}
