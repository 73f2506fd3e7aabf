/* Aggregations are not chosen from. */
BEGIN
{
	x = 1;
	@a = count();
	@b = count();
	x ? @a : @b;
}
