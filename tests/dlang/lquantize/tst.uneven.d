/* A limit that is no whole number of steps away: it moves to the last whole step. */
#pragma D option quiet
BEGIN { @l = lquantize(5, 0, 10, 3); @l = lquantize(9, 0, 10, 3); exit(0); }
