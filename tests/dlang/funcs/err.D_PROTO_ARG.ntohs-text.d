/* Only numbers have an order of bytes. */
BEGIN
{
	ntohs("a");
	exit(0);
}
