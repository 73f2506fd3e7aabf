/* Two texts, one behind the other. */
#pragma D option quiet

BEGIN
{
	printf("[%s]\n", strjoin("foo", "bar"));
	printf("[%s]\n", strjoin("", "bar"));
	printf("[%s]\n", strjoin("foo", ""));
	printf("[%s]\n", strjoin("", ""));
	printf("[%s]\n", strjoin(strjoin("a", "b"), strjoin("c", "d")));
	printf("[%s]\n", strjoin(probename, lltostr(7)));
	exit(0);
}
