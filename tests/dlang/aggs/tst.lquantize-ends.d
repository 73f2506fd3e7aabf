/* lquantize() with what is below and above. */
#pragma D option quiet

BEGIN { @ = lquantize(-1, 0, 30, 10); @ = lquantize(15, 0, 30, 10); @ = lquantize(15, 0, 30, 10); @ = lquantize(30, 0, 30, 10); exit(0); }
