/* A number is no text. */
BEGIN
{
	substr(5, 1);
	exit(0);
}
