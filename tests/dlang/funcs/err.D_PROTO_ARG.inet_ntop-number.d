/* An address is passed by its own address. */
BEGIN
{
	inet_ntop(2, 5);
	exit(0);
}
