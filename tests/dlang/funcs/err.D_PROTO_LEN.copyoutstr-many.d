/* copyoutstr() has an argument too many. */
BEGIN
{
	copyoutstr("a", arg0, 1, 1);
	exit(0);
}
