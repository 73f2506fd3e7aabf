/* Also for ++. */
BEGIN
{
	pid++;
}
