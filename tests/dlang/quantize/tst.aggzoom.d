/* aggzoom: the highest bar is 95 per cent of the width. */
#pragma D option quiet
#pragma D option aggzoom
BEGIN { @q = quantize(2, 10); @q = quantize(4, 5); exit(0); }
