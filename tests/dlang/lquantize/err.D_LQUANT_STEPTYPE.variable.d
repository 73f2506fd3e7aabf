/* The step is a constant. */
BEGIN { s = 1; @a = lquantize(1, 0, 10, s); }
