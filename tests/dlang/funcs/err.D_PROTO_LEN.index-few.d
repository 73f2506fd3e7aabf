/* index() misses an argument. */
BEGIN
{
	index("a");
	exit(0);
}
