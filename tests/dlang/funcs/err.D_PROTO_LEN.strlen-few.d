/* strlen() misses an argument. */
BEGIN
{
	strlen();
	exit(0);
}
