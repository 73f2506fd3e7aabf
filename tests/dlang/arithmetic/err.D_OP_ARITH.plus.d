/* Not even plus. */
BEGIN
{
	trace(+"abc");
}
