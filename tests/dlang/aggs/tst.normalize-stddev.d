/* The deviation of 10, 30 is 10: normalize() divides it, as it divides each value. */
#pragma D option quiet

BEGIN
{
	@a = stddev(10);
	@a = stddev(30);
	normalize(@a, 5);
	printa("%@d\n", @a);
	denormalize(@a);
	printa("%@d\n", @a);
	exit(0);
}
