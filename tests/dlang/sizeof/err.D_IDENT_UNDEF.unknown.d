/* Nor what nobody knows. */
BEGIN
{
	trace(sizeof (nosuch));
}
