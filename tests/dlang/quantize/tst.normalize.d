/* The numbers are divided, the bars are not. */
#pragma D option quiet
BEGIN { @q = quantize(2, 10); @q = quantize(4, 30); exit(0); }
END { normalize(@q, 10); }
