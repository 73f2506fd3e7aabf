/* A device is a number. */
BEGIN
{
	getminor("a");
	exit(0);
}
