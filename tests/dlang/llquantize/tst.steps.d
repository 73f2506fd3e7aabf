/* llquantize() of two orders of magnitude. */
#pragma D option quiet

BEGIN { @ = llquantize(5, 10, 0, 1, 10); @ = llquantize(50, 10, 0, 1, 10); @ = llquantize(1000, 10, 0, 1, 10); exit(0); }
