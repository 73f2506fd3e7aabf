/* aggsortpos says whose values. */
#pragma D option quiet
#pragma D option aggsortpos=1

BEGIN
{
	@a["x"] = sum(3); @b["x"] = sum(1);
	@a["y"] = sum(2); @b["y"] = sum(2);
	@a["z"] = sum(1); @b["z"] = sum(3);
	printa("%s%@d%@d\n", @a, @b);
	exit(0);
}
