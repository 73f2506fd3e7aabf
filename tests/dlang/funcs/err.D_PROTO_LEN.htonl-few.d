/* htonl() misses an argument. */
BEGIN
{
	htonl();
	exit(0);
}
