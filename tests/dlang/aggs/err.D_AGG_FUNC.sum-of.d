/* The function is all there may be. */
BEGIN { @a = count() + 1; }
