/* Nor constants. */
BEGIN
{
	trace(&5);
}
