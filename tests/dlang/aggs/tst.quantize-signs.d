/* quantize() of values of both signs, and of 0. */
#pragma D option quiet

BEGIN { @ = quantize(-5); @ = quantize(0); @ = quantize(1); @ = quantize(100); exit(0); }
