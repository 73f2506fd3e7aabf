/* Types stand in parentheses. */
BEGIN
{
	trace(sizeof int);
}
