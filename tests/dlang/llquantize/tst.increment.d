/* How much a value counts. */
#pragma D option quiet
BEGIN { @l = llquantize(5, 10, 0, 3, 10, 4); exit(0); }
