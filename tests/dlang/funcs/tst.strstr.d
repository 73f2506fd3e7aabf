/* The rest of a text from where another begins in it. */
#pragma D option quiet

BEGIN
{
	printf("[%s]\n", strstr("foobar", "ob"));
	printf("[%s]\n", strstr("foobar", "foobar"));
	printf("[%s]\n", strstr("foobar", ""));
	printf("[%s]\n", strstr("aab", "ab"));
	printf("[%s]\n", strstr("", ""));
	exit(0);
}

END
{
	printf("%d %d\n", strstr("foobar", "x") == NULL, strstr("foo", "foobar") == NULL);
}
