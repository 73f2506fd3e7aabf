/* inet_ntoa6() misses an argument. */
BEGIN
{
	inet_ntoa6();
	exit(0);
}
