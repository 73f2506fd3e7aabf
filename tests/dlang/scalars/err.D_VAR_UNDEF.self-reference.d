/* Its own value is not there yet. */
BEGIN
{
	x = x + 1;
}
