/* There are at most 65535 levels. */
BEGIN { @a = lquantize(1, 0, 65536); }
