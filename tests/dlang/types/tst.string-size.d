/* A string has strsize bytes; a constant what it is written with. */
/* @options: -x strsize=64 */
#pragma D option quiet

string s;

BEGIN
{
	s = "abc";
	printf("%d %d %d\n", sizeof (string), sizeof (s), sizeof ("abc"));
	exit(0);
}
