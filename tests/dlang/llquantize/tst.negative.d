/* Negative values are below. */
#pragma D option quiet
BEGIN { @l = llquantize(-5, 10, 0, 3, 10); exit(0); }
