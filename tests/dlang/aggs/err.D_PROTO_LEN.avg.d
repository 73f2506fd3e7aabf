/* avg() takes a value. */
BEGIN { @a = avg(); }
