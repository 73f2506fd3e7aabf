/* copyin() has an argument too many. */
BEGIN
{
	copyin(arg0, 1, 2);
	exit(0);
}
