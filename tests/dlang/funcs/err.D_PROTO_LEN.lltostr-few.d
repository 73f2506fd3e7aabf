/* lltostr() misses an argument. */
BEGIN
{
	lltostr();
	exit(0);
}
