/* A number is no text. */
BEGIN
{
	index(5, "a");
	exit(0);
}
