/* strjoin() has an argument too many. */
BEGIN
{
	strjoin("a", "b", "c");
	exit(0);
}
