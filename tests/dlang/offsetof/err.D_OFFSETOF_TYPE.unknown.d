/* A struct that nobody defined has no members to measure to. */
BEGIN
{
	trace(offsetof(struct nosuch, a));
}
