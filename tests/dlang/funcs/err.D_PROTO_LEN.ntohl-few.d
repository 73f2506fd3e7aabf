/* ntohl() misses an argument. */
BEGIN
{
	ntohl();
	exit(0);
}
