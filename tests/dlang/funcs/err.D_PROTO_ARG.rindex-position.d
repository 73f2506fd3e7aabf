/* A position is a number. */
BEGIN
{
	rindex("a", "b", "c");
	exit(0);
}
