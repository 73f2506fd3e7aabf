/* getmajor() has an argument too many. */
BEGIN
{
	getmajor(1, 2);
	exit(0);
}
