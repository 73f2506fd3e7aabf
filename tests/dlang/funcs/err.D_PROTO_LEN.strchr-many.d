/* strchr() has an argument too many. */
BEGIN
{
	strchr("a", 'b', 1);
	exit(0);
}
