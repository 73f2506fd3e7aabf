/* Strings are not added. */
BEGIN
{
	a = "a";
	b = "b";
	trace(a + b);
}
