/* Where the first are equal, the next decide, then the keys. */
#pragma D option quiet

BEGIN
{
	@a["p"] = sum(1); @b["p"] = sum(9);
	@a["q"] = sum(1); @b["q"] = sum(4);
	@a["o"] = sum(1); @b["o"] = sum(9);
	printa("%s%@d%@d\n", @a, @b);
	exit(0);
}
