/* More than 64 bits. */
BEGIN
{
	trace(0x10000000000000000);
}
