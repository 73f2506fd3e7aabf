/* The escapes of libdtrace's lexer. It knows no others: of '\'' and '\?', as of any, the backslash stays. */
#pragma D option quiet

BEGIN
{
	printf("%d %d %d %d %d %d %d\n", '\a', '\b', '\f', '\n', '\r', '\t', '\v');
	printf("%d %d %d %d\n", '\\', '\'', '\"', '\?');
	printf("%d %d %d %d\n", '\0', '\101', '\x41', '\7');
	printf("%d %d %x\n", '\c', '\\c', '\n\q');
	exit(0);
}
