/* Normalized. */
#pragma D option quiet
BEGIN { @l = lquantize(1, 0, 3, 1, 50); normalize(@l, 10); exit(0); }
