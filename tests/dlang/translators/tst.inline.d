/* An inline may name a translation. */
#pragma D option quiet

struct parts {
	int low;
	int high;
};

typedef uint64_t word_t;

translator struct parts < word_t n > {
	low = n & 0xf;
	high = (n >> 4) & 0xf;
};

word_t word;
inline struct parts split = xlate <struct parts>(word);

BEGIN
{
	word = 0x5a;
	printf("%x %x\n", split.low, split.high);
	exit(0);
}
