/* ntohl() has an argument too many. */
BEGIN
{
	ntohl(1, 2);
	exit(0);
}
