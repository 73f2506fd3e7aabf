/* 10 to the 20th does not fit 64 bits. */
BEGIN { @a = llquantize(1, 10, 0, 20, 20); }
