/* A number is no text. */
BEGIN
{
	strstr("a", 5);
	exit(0);
}
