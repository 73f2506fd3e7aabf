/* toupper() has an argument too many. */
BEGIN
{
	toupper("a", "b");
	exit(0);
}
