/* A parenthesis too many. */
BEGIN
{
	trace(1));
}
