/* A cast keeps the low bits and gives them the new sign. */
#pragma D option quiet

BEGIN
{
	x = (int64_t)0x123456789abcdef0;
	printf("%d %d %d\n", (char)x, (short)x, (int)x);
	printf("%u %u %u\n", (uint8_t)x, (uint16_t)x, (uint32_t)x);
	printf("%x %x %x %x\n", (uint8_t)x, (uint16_t)x, (uint32_t)x, (uint64_t)x);
	printf("%d %d\n", (int8_t)x + 1, (uint8_t)x + 1);
	exit(0);
}
