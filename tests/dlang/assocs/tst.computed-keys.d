/* Any expression is a key. */
#pragma D option quiet

BEGIN
{
	n = 3;
	a[n + 1] = 4;
	a[n * 2] = 6;
	s[strjoin("a", "b")] = 1;
	printf("%d %d %d\n", a[4], a[6], a[n]);
	printf("%d\n", s["ab"]);
	exit(0);
}
