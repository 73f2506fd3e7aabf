/* Only numbers have an order of bytes. */
BEGIN
{
	ntohl("a");
	exit(0);
}
