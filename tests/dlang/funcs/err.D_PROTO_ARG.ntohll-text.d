/* Only numbers have an order of bytes. */
BEGIN
{
	ntohll("a");
	exit(0);
}
