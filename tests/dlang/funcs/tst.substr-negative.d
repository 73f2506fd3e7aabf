/* A length below 0 leaves so much of the end away. */
#pragma D option quiet

BEGIN
{
	printf("[%s]\n", substr("hello", 1, -1));
	printf("[%s]\n", substr("hello", 0, -4));
	printf("[%s]\n", substr("hello", 0, -5));
	printf("[%s]\n", substr("hello", 0, -6));
	printf("[%s]\n", substr("hello", -3, -2));
	printf("[%s]\n", substr("hello", -3, -3));
	exit(0);
}
