/* strjoin() misses an argument. */
BEGIN
{
	strjoin("a");
	exit(0);
}
