/* At the end, by key, of negative values and of large ones; 1 changes nothing. */
#pragma D option quiet

BEGIN
{
	@a[1] = stddev(-1000); @a[1] = stddev(1000);
	@a[2] = stddev(-6000000000000); @a[2] = stddev(6000000000000);
	@a[3] = stddev(7);
	@b = stddev(100); @b = stddev(300);
	normalize(@a, 1000);
	normalize(@b, 1);
	exit(0);
}
