/* copyinstr() misses an argument. */
BEGIN
{
	copyinstr();
	exit(0);
}
