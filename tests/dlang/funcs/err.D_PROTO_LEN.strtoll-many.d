/* strtoll() has an argument too many. */
BEGIN
{
	strtoll("1", 10, 3);
	exit(0);
}
