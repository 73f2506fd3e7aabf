/* And they divide a power of it. */
BEGIN { @a = llquantize(1, 10, 0, 6, 30); }
