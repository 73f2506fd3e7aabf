/* htons() has an argument too many. */
BEGIN
{
	htons(1, 2);
	exit(0);
}
