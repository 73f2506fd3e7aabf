/* The high magnitude is a constant. */
BEGIN { h = 6; @a = llquantize(1, 10, 0, h, 20); }
