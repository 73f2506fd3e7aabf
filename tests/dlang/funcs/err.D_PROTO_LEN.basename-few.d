/* basename() misses an argument. */
BEGIN
{
	basename();
	exit(0);
}
