/* Its remainder. */
BEGIN
{
	trace(1 % 0);
}
