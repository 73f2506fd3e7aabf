/* With keys an aggregation comes into being where it is named, and a name alone does nothing. */
BEGIN
{
	@b[1] = count();
	@a[1];
}
