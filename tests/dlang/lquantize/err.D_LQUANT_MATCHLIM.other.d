/* And its limit. */
BEGIN { @a = lquantize(1, 0, 10); @a = lquantize(1, 0, 11); }
