/* An address is passed by its own address. */
BEGIN
{
	inet_ntoa(5);
	exit(0);
}
