/* An increment is a number. */
BEGIN { @a = quantize(1, "2"); }
