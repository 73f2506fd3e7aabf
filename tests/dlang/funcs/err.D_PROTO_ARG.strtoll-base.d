/* A base is a number. */
BEGIN
{
	strtoll("1", "10");
	exit(0);
}
