/* Structs are keys by value: what they hold now, not where they are. */
#pragma D option quiet

struct pair {
	int x;
	int y;
};

struct pair p, q;
int known[struct pair];
self int mine[struct pair, int];

BEGIN
{
	p.x = q.x = 1;
	p.y = 2;
	q.y = 3;
	known[p] = 5;
	known[q] = 7;
	p.y = 3;
	printf("%d\n", known[p]);
	p.y = 2;
	known[p]++;
	known[p] += 10;
	printf("%d %d\n", known[p], known[q]);
	known[q] = 0;
	p = q;
	printf("%d\n", known[p]);
	self->mine[p, 1] = 4;
	printf("%d %d\n", self->mine[q, 1], self->mine[q, 2]);
	made[p] = "text";
	q.x = 9;
	printf("%s<%s>\n", made[p], made[q] == NULL ? "none" : "one");
	exit(0);
}
