/* NULL is the empty string. */
#pragma D option quiet

BEGIN
{
	printf("%d %d\n", "" == NULL, "a" == NULL);
	s = "x";
	s = NULL;
	printf("[%s] %d\n", s, s == "");
	exit(0);
}
