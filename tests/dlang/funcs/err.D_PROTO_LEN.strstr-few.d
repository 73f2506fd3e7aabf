/* strstr() misses an argument. */
BEGIN
{
	strstr("a");
	exit(0);
}
