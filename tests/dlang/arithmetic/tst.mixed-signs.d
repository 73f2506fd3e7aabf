/* An int and an unsigned int are compared and divided in 64 bits, unsigned; a store keeps the low 32. */
#pragma D option quiet

BEGIN
{
	i = -1;
	printf("%d %d %d\n", i == 0xffffffff, (uint32_t)i == 0xffffffff, i < 0u);
	printf("%d\n", (uint64_t)i == 0xffffffffffffffff);
	i = -8;
	printf("%d %d\n", i / 3u, i % 3u);
	u = (uint32_t)4294967295;
	v = u + 1;
	printf("%d %d %d\n", v, u + 1 == 0, (uint64_t)(u + 1));
	exit(0);
}
