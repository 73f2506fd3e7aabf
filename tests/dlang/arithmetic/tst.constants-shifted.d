/* The sign of a constant decides what >> fills with, too. */
#pragma D option quiet

BEGIN
{
	i = -8;
	printf("%d %d %d\n", -8 >> 1, -8 >> 1 == i >> 1, -8L >> 63);
	printf("%x %x\n", 0x80000000 >> 4, (uint64_t)-8 >> 60);
	printf("%x %x\n", 0xffffffff << 4, 1 << 40 == 1L << 40);
	exit(0);
}
