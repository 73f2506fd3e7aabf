/* Or in a key. */
BEGIN
{
	@[trace()] = count();
}
