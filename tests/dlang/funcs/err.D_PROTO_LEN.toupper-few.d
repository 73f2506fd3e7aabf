/* toupper() misses an argument. */
BEGIN
{
	toupper();
	exit(0);
}
