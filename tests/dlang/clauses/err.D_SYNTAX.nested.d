/* There are no blocks of their own. */
BEGIN
{
	{
		x = 1;
	}
}
