/* avg() is the sum through the count, truncated. */
#pragma D option quiet

BEGIN
{
	@a["up"] = avg(1);
	@a["up"] = avg(2);
	@a["down"] = avg(-1);
	@a["down"] = avg(-2);
	@a["even"] = avg(10);
	@a["even"] = avg(20);
	exit(0);
}
