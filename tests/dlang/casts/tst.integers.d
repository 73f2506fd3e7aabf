/* Casts between all integers. */
#pragma D option quiet

BEGIN
{
	n = -1;
	printf("%d %d %d %d\n", (unsigned char)n, (unsigned short)n, (unsigned int)n, (int64_t)n);
	m = (uint64_t)0xfedcba9876543210;
	printf("%d %d %d %d\n", (signed char)m, (short)m, (int)m, (long long)m);
	printf("%u %u %u\n", (uint8_t)(m >> 8), (uint16_t)(m >> 16), (uint32_t)(m >> 32));
	exit(0);
}
