/* htonl() has an argument too many. */
BEGIN
{
	htonl(1, 2);
	exit(0);
}
