/* htonll() has an argument too many. */
BEGIN
{
	htonll(1, 2);
	exit(0);
}
