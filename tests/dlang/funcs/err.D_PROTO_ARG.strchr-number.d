/* A number is no text. */
BEGIN
{
	strchr(5, 'a');
	exit(0);
}
