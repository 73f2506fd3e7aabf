/* What an aggregation is cannot be computed with. */
BEGIN
{
	@a = count();
	x = @a + 1;
}
