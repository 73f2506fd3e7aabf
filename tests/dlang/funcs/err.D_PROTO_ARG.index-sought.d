/* A number is no text, nor a character. */
BEGIN
{
	index("a", 5);
	exit(0);
}
