/* A character is a number. */
BEGIN
{
	strchr("a", "b");
	exit(0);
}
