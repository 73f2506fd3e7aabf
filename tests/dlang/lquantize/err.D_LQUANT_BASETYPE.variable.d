/* The base is a constant. */
BEGIN { b = 0; @a = lquantize(1, b, 10); }
