/* Only numbers have an order of bytes. */
BEGIN
{
	htons("a");
	exit(0);
}
