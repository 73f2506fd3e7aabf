/* The rest of a text from a character's last place on. */
#pragma D option quiet

BEGIN
{
	printf("[%s]\n", strrchr("hello", 'l'));
	printf("[%s]\n", strrchr("hello", 'h'));
	printf("[%s]\n", strrchr("a/b/c", '/'));
	exit(0);
}

END
{
	printf("%d\n", strrchr("hello", 'z') == NULL);
}
