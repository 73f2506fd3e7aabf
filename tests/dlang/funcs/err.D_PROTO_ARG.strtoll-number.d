/* A number is no text. */
BEGIN
{
	strtoll(5);
	exit(0);
}
