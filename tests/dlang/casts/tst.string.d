/* (string) of text. */
#pragma D option quiet

char c[4];

BEGIN
{
	c[0] = 'x';
	s = (string)c;
	printf("%s %s\n", s, (string)"y");
	exit(0);
}
