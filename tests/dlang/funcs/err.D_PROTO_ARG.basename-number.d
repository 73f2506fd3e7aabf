/* A number is no text. */
BEGIN
{
	basename(5);
	exit(0);
}
