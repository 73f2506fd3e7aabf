/* ++ wants a variable. */
BEGIN
{
	5++;
}
