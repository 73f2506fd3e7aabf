/* So is ~. */
BEGIN
{
	trace(~"abc");
}
