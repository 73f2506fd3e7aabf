/* lltostr() has an argument too many. */
BEGIN
{
	lltostr(1, 10, 3);
	exit(0);
}
