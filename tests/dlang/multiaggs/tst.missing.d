/* Where one has no such key, it has 0. */
#pragma D option quiet

BEGIN
{
	@c["a"] = count();
	@s["b"] = sum(6);
	printa("%s %@d %@d\n", @c, @s);
	exit(0);
}
