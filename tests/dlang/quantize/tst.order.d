/* Distributions are ordered by the sum of what they hold. */
#pragma D option quiet
BEGIN { @q["ten ones"] = quantize(1, 10); @q["a two"] = quantize(2, 1); @q["minus"] = quantize(-2); exit(0); }
END { printa("%s\n", @q); }
