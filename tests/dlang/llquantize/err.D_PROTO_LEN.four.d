/* llquantize() wants a value and four constants. */
BEGIN { @a = llquantize(1, 10, 0, 6); }
