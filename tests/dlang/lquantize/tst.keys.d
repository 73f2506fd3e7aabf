/* Keys. */
#pragma D option quiet
BEGIN { @l["b"] = lquantize(1, 0, 2); @l["a"] = lquantize(0, 0, 2); exit(0); }
