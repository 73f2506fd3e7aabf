/* getminor() has an argument too many. */
BEGIN
{
	getminor(1, 2);
	exit(0);
}
