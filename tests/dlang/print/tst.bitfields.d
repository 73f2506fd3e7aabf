/* Bit-fields have their width. */
#pragma D option quiet

struct bits {
	unsigned int low : 4;
	unsigned int high : 12;
};

struct bits b;

BEGIN
{
	b.low = 5;
	b.high = 255;
	print(b);
	exit(0);
}
