/* A bar is rounded to the nearest column. */
#pragma D option quiet

BEGIN
{
	@q = quantize(1, 1);
	@q = quantize(2, 79);
	@r = quantize(1, 1);
	@r = quantize(2, 80);
	exit(0);
}
