/* Values of all functions that give a number. */
#pragma D option quiet

BEGIN
{
	@c = count(); @s = sum(3); @s = sum(4); @a = avg(3); @a = avg(4);
	@l = min(3); @l = min(4); @h = max(3); @h = max(4); @d = stddev(2); @d = stddev(4);
	printa("%@d", @c); printa(" %@d", @s); printa(" %@d", @a);
	printa(" %@d", @l); printa(" %@d", @h); printa(" %@d\n", @d);
	exit(0);
}
