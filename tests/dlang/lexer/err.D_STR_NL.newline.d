/* A string ends in its line. */
BEGIN
{
	trace("abc
	def");
}
