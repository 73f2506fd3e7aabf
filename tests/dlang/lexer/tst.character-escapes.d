/* C's escapes. */
#pragma D option quiet

BEGIN
{
	printf("%d %d %d %d %d %d %d\n", '\a', '\b', '\f', '\n', '\r', '\t', '\v');
	printf("%d %d %d %d\n", '\\', '\'', '\"', '\?');
	printf("%d %d %d %d\n", '\0', '\101', '\x41', '\7');
	exit(0);
}
