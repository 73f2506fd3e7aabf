/* dirname() has an argument too many. */
BEGIN
{
	dirname("a", "b");
	exit(0);
}
