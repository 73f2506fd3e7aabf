/* A character is a number. */
BEGIN
{
	strrchr("a", "b");
	exit(0);
}
