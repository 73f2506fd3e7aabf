/* strrchr() misses an argument. */
BEGIN
{
	strrchr("a");
	exit(0);
}
