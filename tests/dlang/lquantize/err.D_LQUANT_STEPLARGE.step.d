/* A step fits between base and limit. */
BEGIN { @a = lquantize(1, 0, 10, 11); }
