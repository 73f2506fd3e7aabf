/* All beyond the limit. */
#pragma D option quiet
BEGIN { @l = lquantize(700, 0, 100, 10); exit(0); }
