/* htonll() misses an argument. */
BEGIN
{
	htonll();
	exit(0);
}
