/* The last argument is how much a value counts. */
#pragma D option quiet
BEGIN { @l = lquantize(5, 0, 10, 5, 7); @l = lquantize(1, 0, 10, 5, 3); exit(0); }
