/* Factor 2, two steps. */
#pragma D option quiet
BEGIN { @l = llquantize(5, 2, 0, 4, 2); @l = llquantize(16, 2, 0, 4, 2); @l = llquantize(32, 2, 0, 4, 2); exit(0); }
