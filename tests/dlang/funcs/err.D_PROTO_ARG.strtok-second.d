/* A number is no text. */
BEGIN
{
	strtok("a", 5);
	exit(0);
}
