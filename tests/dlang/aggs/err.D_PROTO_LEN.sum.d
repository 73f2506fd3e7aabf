/* sum() takes a value. */
BEGIN { @a = sum(); }
