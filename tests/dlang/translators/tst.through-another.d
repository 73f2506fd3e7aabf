/* A translator may use another one. */
#pragma D option quiet

struct raw {
	int bits;
};

struct half {
	int low;
};

struct whole {
	int low;
	int twice;
};

translator struct half < struct raw *r > {
	low = r->bits & 0xff;
};

translator struct whole < struct raw *r > {
	low = xlate <struct half>(r).low;
	twice = xlate <struct half>(r).low * 2;
};

BEGIN
{
	this->r = (struct raw *)alloca(sizeof (struct raw));
	this->r->bits = 0x1234;
	printf("%x %x\n", xlate <struct whole>(this->r).low, xlate <struct whole>(this->r).twice);
	exit(0);
}
