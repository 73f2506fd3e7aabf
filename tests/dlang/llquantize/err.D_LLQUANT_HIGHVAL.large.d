/* The high magnitude has 16 bits. */
BEGIN { @a = llquantize(1, 10, 0, 65536, 20); }
