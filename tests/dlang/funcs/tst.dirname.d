/* What stands before it, as dirname(1). */
#pragma D option quiet

BEGIN
{
	printf("[%s]\n", dirname("/foo/bar/baz"));
	printf("[%s]\n", dirname("/foo/bar/"));
	printf("[%s]\n", dirname("/foo"));
	printf("[%s]\n", dirname("foo"));
	printf("[%s]\n", dirname("/"));
	printf("[%s]\n", dirname("//"));
	printf("[%s]\n", dirname("foo//bar"));
	printf("[%s]\n", dirname(".."));
	printf("[%s]\n", dirname(""));
	printf("[%s]\n", dirname("/foo//bar//"));
	exit(0);
}
