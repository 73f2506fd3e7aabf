/* An aggregation keeps its factor. */
BEGIN { @a = llquantize(1, 10, 0, 6, 20); @a = llquantize(1, 5, 0, 6, 25); }
