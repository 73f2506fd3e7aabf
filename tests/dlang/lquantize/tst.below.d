/* All below the base. */
#pragma D option quiet
BEGIN { @l = lquantize(-7, 0, 100, 10); exit(0); }
