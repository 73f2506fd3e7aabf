/* An aggregation that nothing was aggregated into is not known, */
BEGIN
{
	@a;
}
