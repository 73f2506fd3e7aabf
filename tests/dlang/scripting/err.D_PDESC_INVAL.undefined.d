/* A description with an argument that is missing. */
dtrace:::$1
{
	exit(0);
}
