/* A precision: the fewest digits, the most characters. */
#pragma D option quiet

BEGIN
{
	printf("[%.5d] [%.5x] [%8.5d] [%-8.5d]\n", 42, 42, 42, 42);
	printf("[%.3s] [%.10s] [%5.2s] [%-5.2s]\n", "abcdef", "abc", "abcdef", "abcdef");
	printf("[%.5d]\n", -42);
	exit(0);
}
