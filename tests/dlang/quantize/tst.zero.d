/* 0 has a bucket of its own. */
#pragma D option quiet
BEGIN { @q = quantize(0); @q = quantize(0); exit(0); }
