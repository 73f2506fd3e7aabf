/* A number is no text. */
BEGIN
{
	strjoin(5, "a");
	exit(0);
}
