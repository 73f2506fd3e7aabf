/* basename() has an argument too many. */
BEGIN
{
	basename("a", "b");
	exit(0);
}
