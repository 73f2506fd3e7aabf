/* strstr() has an argument too many. */
BEGIN
{
	strstr("a", "b", "c");
	exit(0);
}
