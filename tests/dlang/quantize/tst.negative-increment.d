/* A negative increment takes away; bars of negative counts stand at the right, before the line. */
#pragma D option quiet
BEGIN { @q = quantize(4, -2); exit(0); }
