/* The value is a number. */
BEGIN { @a = lquantize("x", 0, 10); }
