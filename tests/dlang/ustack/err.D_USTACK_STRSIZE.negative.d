/* The size of strings is not negative. */
BEGIN { ustack(5, -1); }
