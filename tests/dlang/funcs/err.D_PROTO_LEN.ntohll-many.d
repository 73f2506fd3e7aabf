/* ntohll() has an argument too many. */
BEGIN
{
	ntohll(1, 2);
	exit(0);
}
