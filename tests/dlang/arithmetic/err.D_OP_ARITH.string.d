/* Strings are not multiplied. */
BEGIN
{
	trace("a" * 2);
}
