/* Neither with an exponent. */
BEGIN
{
	trace(1e5);
}
