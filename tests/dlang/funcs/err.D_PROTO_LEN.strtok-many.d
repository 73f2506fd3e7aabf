/* strtok() has an argument too many. */
BEGIN
{
	strtok("a", "b", "c");
	exit(0);
}
