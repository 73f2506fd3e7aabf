/* A number is no text. */
BEGIN
{
	strstr(5, "a");
	exit(0);
}
