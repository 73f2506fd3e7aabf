/* A string keeps strsize bytes. */
#pragma D option quiet
#pragma D option strsize=8

BEGIN
{
	s = "0123456789";
	printf("[%s] %d\n", s, strlen(s));
	t = strjoin("0123", "456");
	printf("[%s]\n", t);
	exit(0);
}
