/* The low magnitude is a constant. */
BEGIN { l = 0; @a = llquantize(1, 10, l, 6, 20); }
