/* Only numbers have an order of bytes. */
BEGIN
{
	htonl("a");
	exit(0);
}
