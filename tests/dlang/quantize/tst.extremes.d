/* The greatest and the least number: there is nothing beyond their buckets. */
#pragma D option quiet
BEGIN { @p = quantize(0x7fffffffffffffff); @n = quantize(0x8000000000000000); exit(0); }
