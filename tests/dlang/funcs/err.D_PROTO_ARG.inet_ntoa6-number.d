/* An address is passed by its own address. */
BEGIN
{
	inet_ntoa6(5);
	exit(0);
}
