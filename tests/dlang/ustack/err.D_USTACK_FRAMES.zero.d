/* It is positive. */
BEGIN { ustack(0); }
