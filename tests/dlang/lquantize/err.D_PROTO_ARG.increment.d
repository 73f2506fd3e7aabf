/* An increment is a number. */
BEGIN { @a = lquantize(1, 0, 10, 1, "x"); }
