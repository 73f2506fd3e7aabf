/* inet_ntoa6() has an argument too many. */
BEGIN
{
	inet_ntoa6(alloca(16), 1);
	exit(0);
}
