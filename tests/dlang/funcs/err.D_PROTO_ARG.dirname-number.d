/* A number is no text. */
BEGIN
{
	dirname(5);
	exit(0);
}
