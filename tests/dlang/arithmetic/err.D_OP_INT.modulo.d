/* The remainder is of integers. */
BEGIN
{
	trace("a" % 2);
}
