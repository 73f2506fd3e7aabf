/* inet_ntoa() misses an argument. */
BEGIN
{
	inet_ntoa();
	exit(0);
}
