/* A string has no sign. */
BEGIN
{
	trace(-"abc");
}
