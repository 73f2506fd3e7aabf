/* A base and a limit below 0. */
#pragma D option quiet
BEGIN { @l = lquantize(-15, -20, -10, 2); @l = lquantize(-20, -20, -10, 2); @l = lquantize(-10, -20, -10, 2); exit(0); }
