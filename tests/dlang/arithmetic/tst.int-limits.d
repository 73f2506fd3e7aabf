/* 32 bits, where they are stored; an expression is computed in 64. */
#pragma D option quiet

int i;
unsigned int u;

BEGIN
{
	i = 2147483647;
	printf("%d\n", i + 1 > i);
	i++; printf("%d", i);
	i = -2147483648; i--; printf(" %d", i);
	i = 4294967295; printf(" %d", i);
	i = 4294967296; printf(" %d\n", i);
	u = 4294967295; u++; printf("%d", u);
	u = 0; u--; printf(" %d", u);
	u = -1; printf(" %d\n", u);
	exit(0);
}
