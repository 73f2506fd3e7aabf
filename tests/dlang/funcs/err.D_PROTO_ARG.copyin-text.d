/* A size is a number. */
BEGIN
{
	copyin(arg0, "4");
	exit(0);
}
