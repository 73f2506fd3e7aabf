/* Narrow variables keep their sign when they get wider, and unsigned ones get zeros. */
#pragma D option quiet

int8_t c;
uint8_t u;
int16_t s;
int32_t i;

BEGIN
{
	c = -1; u = 255; s = -2; i = -3;
	printf("%d %d %d %d\n", (int64_t)c, (int64_t)u, (int64_t)s, (int64_t)i);
	printf("%x %x %x %x\n", (uint64_t)c, (uint64_t)u, (uint64_t)s, (uint64_t)i);
	printf("%x %x\n", (uint32_t)c, (uint16_t)c);
	exit(0);
}
