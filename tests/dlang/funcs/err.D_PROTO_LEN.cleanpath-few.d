/* cleanpath() misses an argument. */
BEGIN
{
	cleanpath();
	exit(0);
}
