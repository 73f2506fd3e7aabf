/* substr() has an argument too many. */
BEGIN
{
	substr("a", 1, 2, 3);
	exit(0);
}
