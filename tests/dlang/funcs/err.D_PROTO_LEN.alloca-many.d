/* alloca() has an argument too many. */
BEGIN
{
	alloca(1, 2);
	exit(0);
}
