/* A global that was never assigned. */
BEGIN
{
	trace(nosuch);
}
