/* Positions of 64 bits. */
#pragma D option quiet

BEGIN
{
	printf("[%s]\n", substr("hello", 0x7fffffffffffffff));
	printf("[%s]\n", substr("hello", 0, 0x7fffffff));
	printf("[%s]\n", substr("hello", -0x7fffffff, 0x7fffffff));
	exit(0);
}
