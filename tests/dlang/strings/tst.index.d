/* The bytes of a string. */
#pragma D option quiet

BEGIN
{
	s = "hello";
	printf("%c%c%c %d\n", s[0], s[1], s[4], s[5]);
	printf("%d\n", s[0] == 'h');
	exit(0);
}
