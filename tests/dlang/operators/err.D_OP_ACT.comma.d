/* Nor operands of a comma. */
BEGIN
{
	trace(1), trace(2);
}
