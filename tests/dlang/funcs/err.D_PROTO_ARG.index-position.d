/* A position is a number. */
BEGIN
{
	index("a", "b", "c");
	exit(0);
}
