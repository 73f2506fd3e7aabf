/* 16 bits. */
#pragma D option quiet

short s;
unsigned short u;

BEGIN
{
	s = 32767; s++; printf("%d", s);
	s = -32768; s--; printf(" %d", s);
	s = 65535; printf(" %d", s);
	s = 65536; printf(" %d\n", s);
	u = 65535; u++; printf("%d", u);
	u = 0; u--; printf(" %d", u);
	u = -1; printf(" %d\n", u);
	exit(0);
}
