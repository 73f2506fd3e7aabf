/* ntohs() misses an argument. */
BEGIN
{
	ntohs();
	exit(0);
}
