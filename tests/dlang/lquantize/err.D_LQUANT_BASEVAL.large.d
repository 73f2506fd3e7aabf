/* The base has 32 bits. */
BEGIN { @a = lquantize(1, -2147483649, 10); }
