/* A factor of 1 never grows. */
BEGIN { @a = llquantize(1, 1, 0, 6, 20); }
