/* ntohs() has an argument too many. */
BEGIN
{
	ntohs(1, 2);
	exit(0);
}
