/* Structs in structs. */
#pragma D option quiet

struct inner {
	short a;
	long b;
};

struct outer {
	char c;
	struct inner i;
	struct inner many[3];
};

struct outer o;

BEGIN
{
	o.c = 'x';
	o.i.a = 1;
	o.i.b = 2;
	o.many[2].b = 3;
	o.many[o.i.a].a = 4;
	printf("%c %d %d %d %d\n", o.c, o.i.a, o.i.b, o.many[2].b, o.many[1].a);
	printf("%d %d %d\n", sizeof (struct outer), sizeof (o.i), sizeof (o.many));
	printf("%d\n", offsetof(struct outer, many));
	exit(0);
}
