/* A number is no text. */
BEGIN
{
	strlen(5);
	exit(0);
}
