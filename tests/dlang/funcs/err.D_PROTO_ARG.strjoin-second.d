/* A number is no text. */
BEGIN
{
	strjoin("a", 5);
	exit(0);
}
