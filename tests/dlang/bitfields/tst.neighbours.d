/* Writing one field leaves the others alone. */
#pragma D option quiet

struct bits {
	uint16_t a : 5;
	uint16_t b : 6;
	uint16_t c : 5;
	uint8_t next;
};

union both {
	struct bits f;
	uint32_t all;
};

union both v;

BEGIN
{
	v.all = 0xffffffff;
	v.f.b = 0;
	printf("%x\n", v.all);
	v.f.a = 1;
	v.f.c = 2;
	printf("%x %d %d %d %d\n", v.all, v.f.a, v.f.b, v.f.c, v.f.next);
	exit(0);
}
