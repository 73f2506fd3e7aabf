/* There are at least as many steps as the factor. */
BEGIN { @a = llquantize(1, 10, 0, 6, 5); }
