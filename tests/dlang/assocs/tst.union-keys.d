/* So are unions, and structs that a pointer leads to. */
#pragma D option quiet

union word {
	int number;
	char bytes[4];
};
struct long_one {
	char name[12];
	union word last;
};

union word w;

BEGIN
{
	w.number = 0x41424344;
	seen[w] = 1;
	w.bytes[0] = 'E';
	printf("%d ", seen[w]);
	w.bytes[0] = 'D';
	printf("%d\n", seen[w]);
	p = (struct long_one *)alloca(sizeof (struct long_one));
	p->name[0] = 'a';
	p->last.number = 5;
	far[*p] = 3;
	p->last.number++;
	printf("%d ", far[*p]);
	p->last.number--;
	printf("%d\n", far[*p]);
	exit(0);
}
