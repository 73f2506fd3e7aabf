/* ++, += and the like go on with what there is, and give it. */
#pragma D option quiet

int i;
uint8_t u;
self short s;

BEGIN
{
	w = (int64_t)1 << 40; i = w; i++; i += 2; ++i;
	printf("%d %d\n", i, i - w);
	u = 255; printf("%d ", u++); printf("%d %d\n", u, u == 256);
	self->s = 32767; self->s++; printf("%d %d\n", self->s, self->s > 0);
	self->s = w; printf("%d %d\n", self->s, self->s != 0);
	exit(0);
}
