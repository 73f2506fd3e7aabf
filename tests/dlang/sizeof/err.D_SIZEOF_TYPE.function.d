/* Nor a function. */
BEGIN
{
	trace(sizeof (int (int)));
}
