/* ntohll() misses an argument. */
BEGIN
{
	ntohll();
	exit(0);
}
