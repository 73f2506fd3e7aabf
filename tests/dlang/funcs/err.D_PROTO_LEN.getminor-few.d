/* getminor() misses an argument. */
BEGIN
{
	getminor();
	exit(0);
}
