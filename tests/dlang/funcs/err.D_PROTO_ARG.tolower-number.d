/* A number is no text. */
BEGIN
{
	tolower(5);
	exit(0);
}
