/* The NUL at the end of a string can be found, as in C: what is left from there on is the empty string. */
#pragma D option quiet

BEGIN
{
	printf("[%s] [%s] [%s]\n", strchr("abc", '\0'), strrchr("abc", '\0'), strchr("", 0));
	printf("[%s] [%s]\n", strchr("abca", 'a'), strrchr("abca", 'a'));
	printf("%d %d\n", strchr("abc", 'd') == NULL, strlen(strchr("abc", 256)));
	exit(0);
}
