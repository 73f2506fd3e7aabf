/* Outside the text is nothing; what begins before it is cut. */
#pragma D option quiet

BEGIN
{
	printf("[%s]\n", substr("hello", 5));
	printf("[%s]\n", substr("hello", 6));
	printf("[%s]\n", substr("hello", 100, 1));
	printf("[%s]\n", substr("hello", -9));
	printf("[%s]\n", substr("hello", -9, 6));
	printf("[%s]\n", substr("hello", -9, 2));
	printf("[%s]\n", substr("hello", -9, -1));
	printf("[%s]\n", substr("", 0));
	printf("[%s]\n", substr("", -1, 1));
	exit(0);
}
