/* Characters before the end. */
#pragma D option quiet

BEGIN
{
	printf("%d\n", strlen(""));
	printf("%d\n", strlen("a"));
	printf("%d\n", strlen("hello, world"));
	printf("%d\n", strlen("a\0bc"));
	printf("%d\n", strlen(probeprov));
	printf("%d\n", strlen(strjoin("ab", "cde")));
	printf("%d\n", sizeof (strlen("a")));
	exit(0);
}
