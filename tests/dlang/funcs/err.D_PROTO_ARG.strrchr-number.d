/* A number is no text. */
BEGIN
{
	strrchr(5, 'a');
	exit(0);
}
