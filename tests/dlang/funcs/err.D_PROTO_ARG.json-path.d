/* A path is text. */
BEGIN
{
	json("{}", 5);
	exit(0);
}
