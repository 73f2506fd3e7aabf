/* Assigning a struct copies it. */
#pragma D option quiet

struct point {
	int x;
	int y;
};

struct point p;
struct point q;

BEGIN
{
	p.x = 1;
	p.y = 2;
	q = p;
	p.x = 100;
	r = q;
	printf("%d %d %d %d\n", q.x, q.y, r.x, r.y);
	exit(0);
}
