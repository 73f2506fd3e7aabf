/* A base is a number. */
BEGIN
{
	lltostr(1, "a");
	exit(0);
}
