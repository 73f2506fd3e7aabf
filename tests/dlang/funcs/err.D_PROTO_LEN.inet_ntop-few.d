/* inet_ntop() misses an argument. */
BEGIN
{
	inet_ntop(2);
	exit(0);
}
