/* progenyof() misses an argument. */
BEGIN
{
	progenyof();
	exit(0);
}
