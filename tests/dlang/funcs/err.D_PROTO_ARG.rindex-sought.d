/* A number is no text, nor a character. */
BEGIN
{
	rindex("a", 5);
	exit(0);
}
