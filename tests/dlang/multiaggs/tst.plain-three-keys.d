/* Several keys, none in common. */
#pragma D option quiet

BEGIN
{
	@a[1, "x"] = sum(1);
	@b[2, "y"] = sum(2);
	@c[1, "y"] = sum(3);
	printa("%d%s %@d %@d %@d\n", @a, @b, @c);
	exit(0);
}
