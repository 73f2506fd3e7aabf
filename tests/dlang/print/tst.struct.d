/* A struct: its members, a line each. */
#pragma D option quiet

struct inner {
	char c;
	short s[2];
};

struct outer {
	int i;
	struct inner in;
	struct outer *next;
};

struct outer o;

BEGIN
{
	o.i = 10;
	o.in.c = 'x';
	o.in.s[0] = 1;
	o.in.s[1] = 2;
	print(o);
	exit(0);
}
