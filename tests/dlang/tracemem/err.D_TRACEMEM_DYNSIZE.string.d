/* The dynamic size is a number. */
BEGIN { tracemem(alloca(8), 8, "four"); }
