/* A picture for each key, those with less first. */
#pragma D option quiet
BEGIN { @q["large"] = quantize(8); @q["small"] = quantize(2); exit(0); }
