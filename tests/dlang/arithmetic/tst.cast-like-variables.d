/* A cast gives the same of a constant and of a variable, and what is computed from it, too. */
#pragma D option quiet

BEGIN
{
	i = -1;
	l = (int64_t)-1;
	w = 0x1f0;
	printf("%d%d%d", (uint64_t)-1 == (uint64_t)i, (uint32_t)-1 == (uint32_t)l, (int8_t)0x1f0 == (int8_t)w);
	printf("%d%d%d", (int)(uint8_t)0x1f0 == (int)(uint8_t)w, (uint16_t)-1 == (uint16_t)i, (int)-1L == (int)l);
	printf("%d%d\n", (uint64_t)-1 / 2 == (uint64_t)i / 2, (int8_t)0x1f0 / 2 == (int8_t)w / 2);
	printf("%d %d %d\n", (int8_t)0xf0 == 0xf0, (int8_t)0xf0 < 0, (int8_t)0x7f > 0);
	exit(0);
}
