/* An enumeration: the name. */
#pragma D option quiet

enum color {
	RED,
	GREEN = 7
};

enum color c;

BEGIN
{
	c = GREEN;
	print(c);
	print((enum color)3);
	exit(0);
}
