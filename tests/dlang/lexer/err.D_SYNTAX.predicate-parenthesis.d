/* A predicate ends outside of parentheses. */
BEGIN
/(1/
{
	trace(1);
}
