/* A start is a number. */
BEGIN
{
	substr("a", "b");
	exit(0);
}
