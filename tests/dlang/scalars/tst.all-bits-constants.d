/* Constants are converted when the program is read, as in C; one that is larger than its own type keeps its bits in
   a variable as wide. */
#pragma D option quiet

int i;
unsigned int u;
char c;
uint16_t s;

BEGIN
{
	i = 4294967295; u = -1; c = 200; s = 0xbeefcafe;
	printf("%d %d %d %x\n", i == -1, u == 0xffffffff, c == -56, s);
	i = 1 << 40; printf("%d %d\n", i, i >> 40);
	c = 1 << 40; printf("%d %d\n", c, c == 0);
	exit(0);
}
