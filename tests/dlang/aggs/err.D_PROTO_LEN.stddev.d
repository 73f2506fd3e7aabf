/* stddev() takes a value. */
BEGIN { @a = stddev(); }
