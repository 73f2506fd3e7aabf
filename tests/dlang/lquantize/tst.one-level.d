/* One level. */
#pragma D option quiet
BEGIN { @l = lquantize(0, 0, 1); exit(0); }
