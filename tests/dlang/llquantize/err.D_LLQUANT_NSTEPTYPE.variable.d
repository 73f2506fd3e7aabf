/* The number of steps is a constant. */
BEGIN { n = 20; @a = llquantize(1, 10, 0, 6, n); }
