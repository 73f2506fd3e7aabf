/* The value is cut to 32 bits. */
#pragma D option quiet
BEGIN { @l = lquantize((long)0x100000005, 0, 10, 5); @l = lquantize((long)0xffffffff, 0, 10, 5); exit(0); }
