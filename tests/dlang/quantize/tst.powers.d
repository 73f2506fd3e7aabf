/* A value goes to the greatest power of two that is not greater. */
#pragma D option quiet

BEGIN
{
	@q = quantize(1);
	@q = quantize(2);
	@q = quantize(3);
	@q = quantize(4);
	@q = quantize(7);
	@q = quantize(8);
	exit(0);
}
