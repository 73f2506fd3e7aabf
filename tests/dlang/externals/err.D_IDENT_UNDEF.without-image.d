/* Without an image there are no symbols. */
BEGIN
{
	trace(`calls);
}
