/* & is for integers. */
BEGIN
{
	trace("abc" & 1);
}
