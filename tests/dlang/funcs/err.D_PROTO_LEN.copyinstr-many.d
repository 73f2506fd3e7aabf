/* copyinstr() has an argument too many. */
BEGIN
{
	copyinstr(arg0, 1, 2);
	exit(0);
}
