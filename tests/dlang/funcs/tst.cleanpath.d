/* Components that are empty or . disappear, .. takes the one before it away. */
#pragma D option quiet

BEGIN
{
	printf("[%s]\n", cleanpath("/foo/bar/baz"));
	printf("[%s]\n", cleanpath("/foo/./bar"));
	printf("[%s]\n", cleanpath("/foo//bar///baz"));
	printf("[%s]\n", cleanpath("/foo/../bar"));
	printf("[%s]\n", cleanpath("/foo/bar/.."));
	printf("[%s]\n", cleanpath("/foo/bar/../"));
	printf("[%s]\n", cleanpath("/foo/..."));
	printf("[%s]\n", cleanpath("/a/.b/..c"));
	printf("[%s]\n", cleanpath("a/../b"));
	printf("[%s]\n", cleanpath("//foo"));
	printf("[%s]\n", cleanpath(""));
	printf("[%s]\n", cleanpath("/foo/bar/../../baz"));
	exit(0);
}
