/* Letters of ASCII change, nothing else does. */
#pragma D option quiet

BEGIN
{
	printf("[%s]\n", tolower("Hello, WORLD 42 [@Z`z{]"));
	printf("[%s]\n", toupper("Hello, world 42 [@Z`z{]"));
	printf("[%s]\n", tolower(""));
	printf("[%s]\n", toupper(""));
	printf("[%s]\n", tolower("ABC_abc"));
	exit(0);
}
