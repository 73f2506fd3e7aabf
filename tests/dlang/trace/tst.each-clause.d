/* A line for each clause that records. */

BEGIN
{
	trace("first");
}

BEGIN
{
	trace("second");
	exit(0);
}

END
{
	trace("last");
}
