/* Aggregations with equal keys side by side. */
#pragma D option quiet

BEGIN
{
	@c["a"] = count();
	@s["a"] = sum(5);
	@c["b"] = count();
	@s["b"] = sum(6);
	@c["b"] = count();
	printa("%s %@d %@d\n", @c, @s);
	exit(0);
}
