/* The same declaration may be repeated. */
#pragma D option quiet

int x;
extern int x;
self int y;

BEGIN
{
	x = 5;
	self->y = 6;
	printf("%d %d\n", x, self->y);
	exit(0);
}
