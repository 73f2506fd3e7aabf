/* htons() misses an argument. */
BEGIN
{
	htons();
	exit(0);
}
