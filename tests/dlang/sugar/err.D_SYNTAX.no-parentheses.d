/* A condition stands in parentheses. */
BEGIN
{
	if 1 {
		trace(1);
	}
}
