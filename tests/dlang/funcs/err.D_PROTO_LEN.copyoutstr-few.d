/* copyoutstr() misses an argument. */
BEGIN
{
	copyoutstr("a", arg0);
	exit(0);
}
