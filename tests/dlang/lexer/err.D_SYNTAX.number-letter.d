/* Letters follow no number. */
BEGIN
{
	trace(12x);
}
