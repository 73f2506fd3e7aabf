/* An array that was never assigned. */
BEGIN
{
	trace(nosuch[1]);
}
