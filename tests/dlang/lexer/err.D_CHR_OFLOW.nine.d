/* Nine characters do not fit 64 bits. */
BEGIN
{
	trace('abcdefghi');
}
