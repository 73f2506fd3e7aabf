/* A step that is not given is 1. */
#pragma D option quiet
BEGIN { @l = lquantize(3, 0, 100); @l = lquantize(5, 0, 100); exit(0); }
