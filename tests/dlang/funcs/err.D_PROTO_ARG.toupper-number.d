/* A number is no text. */
BEGIN
{
	toupper(5);
	exit(0);
}
