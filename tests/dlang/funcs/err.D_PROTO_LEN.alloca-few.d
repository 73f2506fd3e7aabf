/* alloca() misses an argument. */
BEGIN
{
	alloca();
	exit(0);
}
