/* A distribution without values shows its first buckets. */
#pragma D option quiet
BEGIN { @l = lquantize(7, 0, 10); exit(0); }
END { clear(@l); }
