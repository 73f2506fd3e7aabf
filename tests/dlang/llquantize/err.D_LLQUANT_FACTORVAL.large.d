/* The factor has 16 bits. */
BEGIN { @a = llquantize(1, 65537, 0, 6, 20); }
