/* The members of a nameless struct or union are the outer one's. */
#pragma D option quiet

struct a {
	int tag;
	union {
		int i;
		char c[4];
	};
	struct {
		short lo;
		short hi;
	};
};

struct a a;

BEGIN
{
	a.tag = 1;
	a.i = 0x41424344;
	a.lo = 5;
	a.hi = 6;
	printf("%d %x %d %d %d\n", a.tag, a.i, a.c[0], a.lo, a.hi);
	printf("%d %d\n", sizeof (struct a), offsetof(struct a, hi));
	exit(0);
}
