/* A character constant is an int; several characters are packed, the first one highest. */
#pragma D option quiet

BEGIN
{
	printf("%d %x %x %x\n", 'A', 'ab', 'abc', 'abcd');
	printf("%d %d\n", sizeof ('A'), sizeof ('ab'));
	printf("%x\n", 'abcdefgh');
	exit(0);
}
