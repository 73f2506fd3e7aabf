/* The square root of the mean square minus the squared mean, in whole numbers: 2, 4, 4, 4, 5, 5, 7, 9 have 2. */
#pragma D option quiet

BEGIN
{
	@a = stddev(2); @a = stddev(4); @a = stddev(4); @a = stddev(4);
	@a = stddev(5); @a = stddev(5); @a = stddev(7); @a = stddev(9);
	@one = stddev(1000);
	@big = stddev(-5000000000);
	@big = stddev(5000000000);
	exit(0);
}
