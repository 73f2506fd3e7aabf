/* Nor divided. */
BEGIN
{
	trace("a" / 2);
}
