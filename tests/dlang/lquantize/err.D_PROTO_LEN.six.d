/* Value, base, limit, step and increment are all. */
BEGIN { @a = lquantize(1, 0, 10, 1, 1, 1); }
