/* 8 bits. */
#pragma D option quiet

char c;
unsigned char u;
int8_t i;
uint8_t v;

BEGIN
{
	c = 127; c++; printf("%d", c);
	c = -128; c--; printf(" %d", c);
	c = 255; printf(" %d", c);
	c = 256; printf(" %d", c);
	c = 384; printf(" %d\n", c);
	u = 255; u++; printf("%d", u);
	u = 0; u--; printf(" %d", u);
	u = -2; printf(" %d\n", u);
	i = 200; v = 200; printf("%d %d\n", i, v);
	exit(0);
}
