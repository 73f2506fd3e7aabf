/* The largest magnitudes that there are. */
#pragma D option quiet
BEGIN
{
	@ten = llquantize(5000000000000000000, 10, 17, 18, 10);
	@two = llquantize(1 << 62, 2, 61, 62, 2);
	exit(0);
}
