/* A device is a number. */
BEGIN
{
	getmajor("a");
	exit(0);
}
