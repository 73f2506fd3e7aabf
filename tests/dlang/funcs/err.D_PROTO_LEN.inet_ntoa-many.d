/* inet_ntoa() has an argument too many. */
BEGIN
{
	inet_ntoa(alloca(4), 1);
	exit(0);
}
