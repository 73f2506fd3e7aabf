/* clear() leaves the keys, with 0. */
#pragma D option quiet

BEGIN
{
	@a["x"] = sum(3);
	@a["y"] = sum(4);
	@b = avg(7);
	@c = stddev(7);
	exit(0);
}

END
{
	clear(@a);
	clear(@b);
	clear(@c);
	printa("%s %@d\n", @a);
	printa("%@d\n", @b);
	printa("%@d\n", @c);
}
