/* To aggregations values are 64 bits: nothing is lost on the way. */
#pragma D option quiet

BEGIN
{
	this->v = (1 << 63) - 1;
	@q = quantize(1, this->v);
	@s = sum(this->v);
	i = 7; i <<= 32;
	@m = max(i);
	printa("%@d %@d\n", @s, @m);
	printa("%@d\n", @q);
	exit(0);
}
