/* The last divisor counts; denormalize() takes it away. */
#pragma D option quiet
BEGIN { @a = sum(100); exit(0); }

END
{
	normalize(@a, 5);
	normalize(@a, 4);
	printa("%@d\n", @a);
	denormalize(@a);
	printa("%@d\n", @a);
}
