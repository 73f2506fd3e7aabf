/* Aggregations that nobody prints come at the end, in their order. */
#pragma D option quiet

BEGIN
{
	@second["x"] = count();
	@first = sum(5);
	@third["k", 3] = max(9);
	@gone[1] = count();
	trunc(@gone);
	exit(0);
}
