/* A number is no text. */
BEGIN
{
	cleanpath(5);
	exit(0);
}
