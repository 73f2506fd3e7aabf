/* Escapes in strings. Of those that libdtrace's lexer does not know, the backslash stays. */
#pragma D option quiet

BEGIN
{
	printf("[%s]\n", "a\tb");
	printf("[%s]\n", "\"quoted\" \\ \'");
	printf("[%s]\n", "\x41\102\103");
	printf("%d %d\n", strlen("a\nb"), strlen("\\n"));
	printf("[%s] %d\n", "\?\d", strlen("\?"));
	exit(0);
}
