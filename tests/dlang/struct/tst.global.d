/* Structs of the program: members are read and written where they are. */
#pragma D option quiet

struct point {
	int x;
	int y;
	char name[8];
};

struct point p;
struct point q;

BEGIN
{
	p.x = 3;
	p.y = p.x + 1;
	q.x = 30;
	p.name[0] = 'p';
	printf("%d %d %d %d %s\n", p.x, p.y, q.x, q.y, p.name);
	p.x++;
	p.y += 10;
	p.x <<= 1;
	printf("%d %d\n", p.x, p.y);
	printf("%d\n", sizeof (struct point));
	exit(0);
}
