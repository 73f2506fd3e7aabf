/* strlen() has an argument too many. */
BEGIN
{
	strlen("a", "b");
	exit(0);
}
