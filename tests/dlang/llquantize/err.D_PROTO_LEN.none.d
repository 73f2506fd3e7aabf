/* llquantize() wants a value and four constants. */
BEGIN { @a = llquantize(); }
