/* dirname() misses an argument. */
BEGIN
{
	dirname();
	exit(0);
}
