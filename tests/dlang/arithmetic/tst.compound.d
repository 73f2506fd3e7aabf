/* Every assignment that computes. */
#pragma D option quiet

BEGIN
{
	x = 100;
	x += 11; printf("%d ", x);
	x -= 1; printf("%d ", x);
	x *= 3; printf("%d ", x);
	x /= 4; printf("%d ", x);
	x %= 50; printf("%d ", x);
	x <<= 2; printf("%d ", x);
	x >>= 1; printf("%d ", x);
	x &= 0x3c; printf("%d ", x);
	x |= 3; printf("%d ", x);
	x ^= 1; printf("%d\n", x);
	y = x += 8;
	printf("%d %d\n", x, y);
	exit(0);
}
