/* Negative values mirror the others: -5 is with -4. */
#pragma D option quiet
BEGIN { @q = quantize(-1); @q = quantize(-5); @q = quantize(-4); @q = quantize(5); exit(0); }
