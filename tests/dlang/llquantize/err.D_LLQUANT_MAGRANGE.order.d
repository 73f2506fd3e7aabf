/* The low magnitude is less than the high one. */
BEGIN { @a = llquantize(1, 10, 6, 0, 20); }
