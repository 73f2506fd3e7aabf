/* Functions in predicates, and of each other. */
#pragma D option quiet

BEGIN
/strlen(strjoin(basename("/a/bcd"), "e")) == 4 && index("xyz", substr("xyz", 1)) == 1/
{
	printf("yes\n");
	exit(0);
}
