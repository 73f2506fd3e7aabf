/* Bytes above 127 pass through. */
#pragma D option quiet

BEGIN
{
	s = "\303\251";
	printf("%s %d\n", s, strlen(s));
	printf("%d\n", s[1] & 0xff);
	exit(0);
}
