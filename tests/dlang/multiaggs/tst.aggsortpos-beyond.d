/* A place that there is not is the first. */
#pragma D option quiet
#pragma D option aggsortpos=5

BEGIN
{
	@a["x"] = sum(3); @b["x"] = sum(1);
	@a["z"] = sum(1); @b["z"] = sum(3);
	printa("%s%@d%@d\n", @a, @b);
	exit(0);
}
