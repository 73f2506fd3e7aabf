/* Nor the built-in ones. */
BEGIN
{
	trace(&timestamp);
}
