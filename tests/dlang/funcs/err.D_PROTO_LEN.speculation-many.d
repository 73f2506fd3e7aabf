/* speculation() has an argument too many. */
BEGIN
{
	speculation(1);
	exit(0);
}
