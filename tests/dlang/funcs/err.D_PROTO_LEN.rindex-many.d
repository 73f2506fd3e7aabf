/* rindex() has an argument too many. */
BEGIN
{
	rindex("a", "b", 1, 2);
	exit(0);
}
