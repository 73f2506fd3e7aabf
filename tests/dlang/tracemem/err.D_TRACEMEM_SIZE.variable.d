/* The size is a constant. */
BEGIN { n = 4; tracemem(alloca(8), n); }
