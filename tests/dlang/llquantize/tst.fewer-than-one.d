/* Where a magnitude has less values than steps, each value has a bucket. */
#pragma D option quiet
BEGIN { @l = llquantize(3, 10, 0, 3, 20); exit(0); }
