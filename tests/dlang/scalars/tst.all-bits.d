/* A scalar keeps the 64 bits that it is given, whatever its type; what is recorded of it has the type's size. */
#pragma D option quiet

int i;
unsigned int u;
char c;
int a[int];
self int t;
this int l;

BEGIN
{
	w = (int64_t)1 << 40;
	i = w + 1; c = w + 2; u = w + 3; a[0] = w + 4; self->t = w + 5; this->l = w + 6; g = 0; g = w + 7;
	printf("%d %d %d %d %d %d %d\n", i, c, u, a[0], self->t, this->l, g);
	printf("%d%d%d%d%d%d%d\n", i == w + 1, c == w + 2, u == w + 3, a[0] == w + 4, self->t == w + 5,
	    this->l == w + 6, g == w + 7);
	printf("%d %d %d\n", i > 1, i >> 40, c / w);
	exit(0);
}
