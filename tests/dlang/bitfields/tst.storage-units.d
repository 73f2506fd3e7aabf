/* A field that does not fit what is left of its unit begins the next one; a field of zero bits ends a unit. */
#pragma D option quiet

struct a {
	uint32_t x : 20;
	uint32_t y : 20;
};

struct b {
	uint8_t x : 3;
	uint8_t : 0;
	uint8_t y : 3;
};

struct c {
	uint32_t x : 8;
	uint32_t : 16;
	uint32_t y : 8;
};

union peek {
	struct a a;
	struct b b;
	struct c c;
	uint64_t all;
};

union peek v;

BEGIN
{
	printf("%d %d %d\n", sizeof (struct a), sizeof (struct b), sizeof (struct c));
	v.all = 0; v.a.y = 5; printf("%x\n", v.all);
	v.all = 0; v.b.y = 5; printf("%x\n", v.all);
	v.all = 0; v.c.y = 5; printf("%x\n", v.all);
	exit(0);
}
