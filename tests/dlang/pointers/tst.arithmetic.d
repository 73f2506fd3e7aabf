/* Sums move by whole elements; differences count them. */
#pragma D option quiet

struct s {
	long a;
	int b;
};

BEGIN
{
	i = (int *)0x1000;
	c = (char *)0x1000;
	l = (uint64_t *)0x1000;
	s = (struct s *)0x1000;
	printf("%p %p %p %p\n", i + 1, c + 1, l + 2, s + 1);
	printf("%p %p %p\n", i - 1, 2 + s, l - 512);
	printf("%d %d %d\n", (i + 5) - i, s + 3 - s, i - (i + 2));
	i++;
	s += 2;
	l--;
	printf("%p %p %p\n", i, s, l);
	printf("%p\n", i + -1);
	exit(0);
}
