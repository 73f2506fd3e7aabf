/* tolower() has an argument too many. */
BEGIN
{
	tolower("a", "b");
	exit(0);
}
