/* lquantize() wants value, base and limit. */
BEGIN { @a = lquantize(1, 2); }
