/* The base is less than the limit. */
BEGIN { @a = lquantize(1, 10, 0); }
