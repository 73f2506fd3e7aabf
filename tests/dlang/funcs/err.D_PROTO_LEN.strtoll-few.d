/* strtoll() misses an argument. */
BEGIN
{
	strtoll();
	exit(0);
}
