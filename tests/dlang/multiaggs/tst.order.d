/* By the first one's values. */
#pragma D option quiet

BEGIN
{
	@a["x"] = sum(3); @b["x"] = sum(1);
	@a["y"] = sum(2); @b["y"] = sum(2);
	@a["z"] = sum(1); @b["z"] = sum(3);
	printa("%s%@d%@d ", @a, @b);
	printa("%s%@d%@d ", @b, @a);
	printf("\n");
	exit(0);
}
