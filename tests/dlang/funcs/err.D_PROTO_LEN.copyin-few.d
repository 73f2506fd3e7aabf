/* copyin() misses an argument. */
BEGIN
{
	copyin(arg0);
	exit(0);
}
