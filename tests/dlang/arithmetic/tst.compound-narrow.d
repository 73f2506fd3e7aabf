/* Assignments that compute leave 64 bits in a narrow variable; what is printed of it has its size. */
#pragma D option quiet

int8_t c;

BEGIN
{
	u = (uint8_t)250;
	u += 10; printf("%d ", u);
	u -= 20; printf("%d ", u);
	u <<= 1; printf("%d ", u);
	u = ~u; printf("%d\n", u);
	c = 100;
	c += 100; printf("%d ", c);
	c *= 3; printf("%d ", c);
	c >>= 1; printf("%d ", c);
	c /= 2; printf("%d\n", c);
	exit(0);
}
