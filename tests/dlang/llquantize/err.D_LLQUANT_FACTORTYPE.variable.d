/* The factor is a constant. */
BEGIN { f = 10; @a = llquantize(1, f, 0, 6, 20); }
