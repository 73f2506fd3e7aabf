/* A brace too many. */
BEGIN
{
	trace(1);
}
}
