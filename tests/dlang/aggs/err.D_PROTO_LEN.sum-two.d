/* sum() takes one value. */
BEGIN { @a = sum(1, 2); }
