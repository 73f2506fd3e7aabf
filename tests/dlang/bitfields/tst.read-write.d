/* Bit-fields keep their low bits; signed ones keep their sign. */
#pragma D option quiet

struct bits {
	unsigned int a : 1;
	unsigned int b : 3;
	int c : 4;
	unsigned int d : 24;
};

struct bits v;

BEGIN
{
	v.a = 3;
	v.b = 9;
	v.c = -3;
	v.d = 0x1abcdef;
	printf("%d %d %d %x\n", v.a, v.b, v.c, v.d);
	v.c = 8;
	v.b++;
	v.a--;
	printf("%d %d %d %x\n", v.a, v.b, v.c, v.d);
	printf("%d\n", sizeof (struct bits));
	exit(0);
}
