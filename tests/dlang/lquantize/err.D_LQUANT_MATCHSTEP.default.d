/* A step that is left out is 1. */
BEGIN { @a = lquantize(1, 0, 10, 2); @a = lquantize(1, 0, 10); }
