/* An array of char and a string go together. */
#pragma D option quiet

char c[8];

BEGIN
{
	c[0] = 'd'; c[1] = 't'; c[2] = 'r'; c[3] = 0;
	printf("%s %s\n", c, stringof(c));
	printf("%d\n", c == "dtr");
	s = stringof(c);
	printf("%d %s\n", strlen(s), s);
	exit(0);
}
