/* Each magnitude, from 10^0 to before 10^3, in steps; what is below and beyond has a row each. */
#pragma D option quiet

BEGIN
{
	@l = llquantize(0, 10, 0, 2, 10);
	@l = llquantize(1, 10, 0, 2, 10);
	@l = llquantize(9, 10, 0, 2, 10);
	@l = llquantize(10, 10, 0, 2, 10);
	@l = llquantize(19, 10, 0, 2, 10);
	@l = llquantize(20, 10, 0, 2, 10);
	@l = llquantize(999, 10, 0, 2, 10);
	@l = llquantize(1000, 10, 0, 2, 10);
	exit(0);
}
