/* Neither does a constant. */
BEGIN
{
	trace(*0x1000);
}
