/* cleanpath() has an argument too many. */
BEGIN
{
	cleanpath("a", "b");
	exit(0);
}
