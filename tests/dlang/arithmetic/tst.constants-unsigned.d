/* Constants that are an unsigned int are so in 32 bits; an int goes on to 64, by which times are written. */
#pragma D option quiet

BEGIN
{
	printf("%d %d %d\n", (0u - 1) / 2, ~0u == 0xffffffff, (uint64_t)(0u - 1));
	printf("%d %d %d\n", -1 == 0xffffffff, -1 < 0u, -1 < 0);
	printf("%d %d\n", 10 * 1000000000 == 10000000000, 0x7fffffff + 1 > 0);
	printf("%d %d %d\n", sizeof (!1L), -5 / 2, -5 % 2);
	exit(0);
}
