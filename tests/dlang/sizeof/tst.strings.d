/* A constant's size counts its NUL; a string variable has strsize bytes. */
#pragma D option quiet

BEGIN
{
	s = "abc";
	printf("%d %d %d\n", sizeof (""), sizeof ("abc"), sizeof (s));
	printf("%d %d\n", sizeof (string), sizeof (strjoin(s, s)));
	exit(0);
}
