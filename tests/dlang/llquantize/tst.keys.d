/* Keys, and a divisor. */
#pragma D option quiet
BEGIN { @l["k", 1] = llquantize(100, 10, 1, 3, 10, 6); normalize(@l, 2); exit(0); }
