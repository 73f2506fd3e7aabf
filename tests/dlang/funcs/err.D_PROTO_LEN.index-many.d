/* index() has an argument too many. */
BEGIN
{
	index("a", "b", 1, 2);
	exit(0);
}
