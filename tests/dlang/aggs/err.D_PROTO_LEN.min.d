/* min() takes a value. */
BEGIN { @a = min(); }
