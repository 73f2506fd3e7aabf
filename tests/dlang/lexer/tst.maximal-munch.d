/* The longest operator is the token. */
#pragma D option quiet

BEGIN
{
	x = 8;
	x >>= 1; printf("%d\n", x);
	x <<= 2; printf("%d\n", x);
	printf("%d %d\n", x>>2<<1, x&&1);
	printf("%d %d\n", x^2^^0, 3&1|4);
	exit(0);
}
