/* NULL equals the empty string. */
#pragma D option quiet

BEGIN
{
	printf("%d %d\n", "" == NULL, "a" == NULL);
	s = "x";
	s = NULL;
	printf("%d %d\n", s == NULL, s == "");
	exit(0);
}
