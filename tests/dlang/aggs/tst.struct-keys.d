/* Structs as keys of aggregations: those of a number's size are shown and ordered as one, others as bytes or text. */
#pragma D option quiet

struct byte {
	uint8_t b;
};
struct pair {
	int x;
	int y;
};
struct name {
	char text[10];
};
struct data {
	short s[5];
};
struct byte b;
struct pair p;
struct name n;
struct data d;

BEGIN
{
	b.b = 200;
	p.x = 1;
	@pairs[p, 7] = count();
	p.y = -1;
	@pairs[p, 7] = count();
	p.y = 0;
	@pairs[p, 7] = count();
	@bytes[b] = sum(5);
	n.text[0] = 'h';
	n.text[1] = 'i';
	@names[n] = sum(6);
	d.s[0] = 1;
	d.s[4] = 0x4142;
	@datas[d] = sum(7);
	exit(0);
}

END
{
	printa(@pairs);
	printa(@bytes);
	printa(@names);
	printa("%@d\n", @datas);
	printa(@datas);
}
