/* << and >>: the left operand's sign decides whether >> fills with ones. */
#pragma D option quiet

BEGIN
{
	i = -8;
	u = (uint64_t)-8L;
	printf("%d %x %d %x\n", i >> 1, u >> 1, i << 1, u << 1);
	one = (int64_t)1;
	printf("%d %d %x\n", one << 0, one << 40, one << 63);
	printf("%d\n", (one << 63) >> 63);
	i <<= 3; u >>= 60;
	printf("%d %d\n", i, u);
	exit(0);
}
