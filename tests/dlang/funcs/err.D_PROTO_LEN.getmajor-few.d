/* getmajor() misses an argument. */
BEGIN
{
	getmajor();
	exit(0);
}
