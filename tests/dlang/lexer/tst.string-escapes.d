/* C's escapes in strings. */
#pragma D option quiet

BEGIN
{
	printf("[%s]\n", "a\tb");
	printf("[%s]\n", "\"quoted\" \\ \'");
	printf("[%s]\n", "\x41\102\103");
	printf("%d %d\n", strlen("a\nb"), strlen("\\n"));
	exit(0);
}
