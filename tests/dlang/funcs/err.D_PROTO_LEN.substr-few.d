/* substr() misses an argument. */
BEGIN
{
	substr("a");
	exit(0);
}
