/* The rest of a text from a character's first place on. */
#pragma D option quiet

BEGIN
{
	printf("[%s]\n", strchr("hello", 'l'));
	printf("[%s]\n", strchr("hello", 'h'));
	printf("[%s]\n", strchr("hello", 'o'));
	printf("[%s]\n", strchr("hello", 108));
	exit(0);
}

END
{
	printf("%d %d\n", strchr("hello", 'z') == NULL, strchr("", 'a') == NULL);
}
