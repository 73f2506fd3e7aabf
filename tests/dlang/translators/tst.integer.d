/* It may translate an integer. */
#pragma D option quiet

struct parts {
	int low;
	int high;
};

translator struct parts < uint64_t n > {
	low = n & 0xffff;
	high = n >> 16;
};

BEGIN
{
	x = (uint64_t)0x12345;
	printf("%x %x\n", xlate <struct parts>(x).low, xlate <struct parts>(x).high);
	exit(0);
}
