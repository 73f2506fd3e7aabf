/* The second argument is how much a value counts. */
#pragma D option quiet
BEGIN { @q = quantize(10, 30); @q = quantize(20, 10); n = 2; @q = quantize(5, n * 5); exit(0); }
