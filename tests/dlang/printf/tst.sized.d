/* h, l and ll are for short, long and long long. */
#pragma D option quiet

BEGIN
{
	printf("%hd %hi\n", (short)-3, (short)3);
	printf("%hu %hx %ho\n", (unsigned short)65535, (unsigned short)255, (unsigned short)8);
	printf("%ld %li\n", (long)-5, 5L);
	printf("%lu %lx %lX %lo\n", (unsigned long)5, 255UL, 255UL, 8UL);
	printf("%lld %lli\n", (long long)-7, 7LL);
	printf("%llu %llx %llX %llo\n", 7ULL, 255ULL, 255ULL, 8ULL);
	exit(0);
}
