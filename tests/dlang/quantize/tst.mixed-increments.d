/* Both kinds: 20 columns on each side of the line. */
#pragma D option quiet
BEGIN { @q = quantize(4, -1); @q = quantize(8, 3); exit(0); }
