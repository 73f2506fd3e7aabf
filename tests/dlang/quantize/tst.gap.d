/* Empty buckets between others are shown. */
#pragma D option quiet
BEGIN { @q = quantize(1); @q = quantize(64); exit(0); }
