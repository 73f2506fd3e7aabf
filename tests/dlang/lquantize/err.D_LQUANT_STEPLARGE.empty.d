/* There is a level at least. */
BEGIN { @a = lquantize(1, 10, 10); }
