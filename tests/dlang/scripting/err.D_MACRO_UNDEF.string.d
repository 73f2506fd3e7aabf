/* As text too. */
BEGIN
{
	trace($$1);
}
