/* Names that came with later versions are the program's: variables, arrays, inlines.
   @options: -x version=1.6 */
#pragma D option quiet

int strtoll;
inline int json = 4;
self int llquantize;

BEGIN
{
	cpu = 5;
	print[cpu] = "x";
	self->llquantize = 6;
	this->toupper = 7;
	jid = timestamp;
	printf("%d %d %s %d %d %d\n", cpu, json, print[5], self->llquantize, this->toupper, strtoll);
	@cpu = stddev(1);
	exit(0);
}
