/* The size is positive. */
BEGIN { tracemem(alloca(8), -1); }
