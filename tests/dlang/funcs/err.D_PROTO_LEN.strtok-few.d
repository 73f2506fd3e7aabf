/* strtok() misses an argument. */
BEGIN
{
	strtok("a");
	exit(0);
}
