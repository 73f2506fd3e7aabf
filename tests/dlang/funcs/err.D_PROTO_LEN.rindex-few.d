/* rindex() misses an argument. */
BEGIN
{
	rindex("a");
	exit(0);
}
