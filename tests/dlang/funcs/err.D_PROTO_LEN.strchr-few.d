/* strchr() misses an argument. */
BEGIN
{
	strchr("a");
	exit(0);
}
