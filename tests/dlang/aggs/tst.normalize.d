/* normalize() divides what is printed. */
#pragma D option quiet

BEGIN
{
	@s["a"] = sum(100);
	@s["b"] = sum(-55);
	@c = count();
	@m = max(99);
	@v = avg(50);
	exit(0);
}

END
{
	normalize(@s, 10);
	normalize(@m, 10);
	normalize(@v, 7);
	printa("%s %@d\n", @s);
	printa("%@d\n", @m);
	printa("%@d\n", @v);
}
