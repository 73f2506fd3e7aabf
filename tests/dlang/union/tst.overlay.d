/* All members of a union share their bytes; machines here are little-endian. */
#pragma D option quiet

union u {
	uint64_t l;
	uint32_t i[2];
	uint16_t s[4];
	uint8_t c[8];
};

union u u;

BEGIN
{
	u.l = 0x0123456789abcdef;
	printf("%x %x %x %x %x %x\n", u.i[0], u.i[1], u.s[0], u.s[3], u.c[0], u.c[7]);
	u.c[7] = 0xff;
	u.s[0] = 0;
	printf("%x %d\n", u.l, sizeof (union u));
	exit(0);
}
