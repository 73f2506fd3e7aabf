/* Bit-fields are integers of their type. */
#pragma D option quiet

struct bits {
	unsigned int low : 4;
	unsigned int high : 28;
};

struct bits b;

BEGIN
{
	b.low = 0x1f;
	b.high = 5;
	printf("%x %d\n", b.low, b.high);
	exit(0);
}
