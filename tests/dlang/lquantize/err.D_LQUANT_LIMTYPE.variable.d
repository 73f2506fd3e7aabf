/* The limit is a constant. */
BEGIN { l = 10; @a = lquantize(1, 0, l); }
