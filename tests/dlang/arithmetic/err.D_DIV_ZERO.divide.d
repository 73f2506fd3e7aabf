/* Division by the constant zero. */
BEGIN
{
	trace(1 / 0);
}
