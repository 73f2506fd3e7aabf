/* u stands once. */
BEGIN
{
	x = 1uu;
}
