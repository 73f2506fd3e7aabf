/* Only numbers have an order of bytes. */
BEGIN
{
	htonll("a");
	exit(0);
}
