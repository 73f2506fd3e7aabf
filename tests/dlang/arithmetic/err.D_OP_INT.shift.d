/* Strings are not shifted. */
BEGIN
{
	trace("abc" << 1);
}
