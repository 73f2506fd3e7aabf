/* Sums have 64 bits. */
#pragma D option quiet
BEGIN { @a = sum(0x7fffffffffffffff); @a = sum(1); exit(0); }
