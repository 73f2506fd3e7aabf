/* A distribution without values shows the buckets around 0. */
#pragma D option quiet
BEGIN { @q = quantize(1000); exit(0); }
END { clear(@q); }
