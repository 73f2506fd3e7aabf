/* json() has an argument too many. */
BEGIN
{
	json("{}", "a", "b");
	exit(0);
}
