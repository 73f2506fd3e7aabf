/* Constants are not assigned to. */
BEGIN
{
	5 = 6;
}
