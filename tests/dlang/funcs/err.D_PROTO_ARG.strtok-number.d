/* A number is no text. */
BEGIN
{
	strtok(5, "a");
	exit(0);
}
