/* json() misses an argument. */
BEGIN
{
	json("{}");
	exit(0);
}
