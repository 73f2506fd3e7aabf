/* Members keep the low bits of what is stored. */
#pragma D option quiet

struct n {
	char c;
	unsigned char uc;
	short s;
	unsigned short us;
	int i;
	unsigned int ui;
	int64_t l;
};

struct n n;

BEGIN
{
	n.c = 0x1ff; n.uc = 0x1ff; n.s = 0x1ffff; n.us = 0x1ffff;
	n.i = 0x1ffffffff; n.ui = 0x1ffffffff; n.l = -1;
	printf("%d %d %d %d %d %d %d\n", n.c, n.uc, n.s, n.us, n.i, n.ui, n.l);
	exit(0);
}
