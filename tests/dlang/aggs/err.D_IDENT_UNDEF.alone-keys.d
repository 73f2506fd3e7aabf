/* With keys, too. */
BEGIN
{
	@b[1] = count();
	@a[1];
}
