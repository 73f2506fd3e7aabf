/* The empty string is the one that equals NULL. */
#pragma D option quiet

string s;

BEGIN
{
	printf("%d %d %d\n", s == "", s == NULL, strlen(s));
	s = "x";
	printf("%d %d\n", s == "", s != NULL);
	s = "";
	printf("%d [%s]\n", s == NULL, s);
	exit(0);
}
