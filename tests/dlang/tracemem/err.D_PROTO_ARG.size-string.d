/* The size is a number. */
BEGIN { tracemem(alloca(8), "abc"); }
