/* progenyof() has an argument too many. */
BEGIN
{
	progenyof(1, 2);
	exit(0);
}
