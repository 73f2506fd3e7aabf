/* A part of a text; a start below 0 counts from the end. */
#pragma D option quiet

BEGIN
{
	printf("[%s]\n", substr("hello", 0));
	printf("[%s]\n", substr("hello", 1));
	printf("[%s]\n", substr("hello", 1, 3));
	printf("[%s]\n", substr("hello", -3));
	printf("[%s]\n", substr("hello", -3, 2));
	printf("[%s]\n", substr("hello", 4, 9));
	printf("[%s]\n", substr("hello", 0, 0));
	exit(0);
}
