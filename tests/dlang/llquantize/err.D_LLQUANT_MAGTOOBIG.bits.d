/* Nor does 2 to the 64th. */
BEGIN { @a = llquantize(1, 2, 0, 64, 2); }
