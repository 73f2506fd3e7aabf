/* What stands behind the last slash that something follows, as basename(1). */
#pragma D option quiet

BEGIN
{
	printf("[%s]\n", basename("/foo/bar/baz"));
	printf("[%s]\n", basename("/foo/bar///"));
	printf("[%s]\n", basename("foo"));
	printf("[%s]\n", basename("/"));
	printf("[%s]\n", basename("//"));
	printf("[%s]\n", basename(""));
	printf("[%s]\n", basename("."));
	printf("[%s]\n", basename(".."));
	printf("[%s]\n", basename("/."));
	printf("[%s]\n", basename("a b/c d"));
	exit(0);
}
