/* The five operations on integers; division goes toward zero, the remainder has the dividend's sign. */
#pragma D option quiet

BEGIN
{
	i = 7;
	j = 2;
	printf("%d %d %d %d %d\n", i + j, i - j, i * j, i / j, i % j);
	printf("%d %d %d %d\n", -i / j, i / -j, -i / -j, -i % j);
	printf("%d %d\n", i % -j, -i % -j);
	exit(0);
}
