/* A length is a number. */
BEGIN
{
	substr("a", 1, "b");
	exit(0);
}
