/* tolower() misses an argument. */
BEGIN
{
	tolower();
	exit(0);
}
