/* An increment is the last. */
BEGIN { @a = llquantize(1, 10, 0, 6, 20, 1, 1); }
