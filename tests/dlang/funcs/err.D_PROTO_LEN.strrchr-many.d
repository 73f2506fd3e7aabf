/* strrchr() has an argument too many. */
BEGIN
{
	strrchr("a", 'b', 1);
	exit(0);
}
