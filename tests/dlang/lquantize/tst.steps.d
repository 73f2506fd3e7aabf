/* Buckets of the same width between base and limit, and one beyond each. */
#pragma D option quiet

BEGIN
{
	@l = lquantize(-1, 0, 10, 5);
	@l = lquantize(0, 0, 10, 5);
	@l = lquantize(4, 0, 10, 5);
	@l = lquantize(5, 0, 10, 5);
	@l = lquantize(10, 0, 10, 5);
	@l = lquantize(100, 0, 10, 5);
	exit(0);
}
