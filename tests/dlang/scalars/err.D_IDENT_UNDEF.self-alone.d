/* They are no variables. */
BEGIN
{
	trace(self);
}
