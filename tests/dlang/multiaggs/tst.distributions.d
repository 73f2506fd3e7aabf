/* A distribution and a number. */
#pragma D option quiet
BEGIN { @q["k"] = quantize(8); @s["k"] = sum(8); printa("%s%@d%@d\n", @q, @s); exit(0); }
