/* quantize() takes a value and an increment. */
BEGIN { @a = quantize(1, 2, 3); }
