/* 10 to the 19th fits 64 bits, the end of its magnitude does not. */
BEGIN { @a = llquantize(1, 10, 0, 19, 20); }
