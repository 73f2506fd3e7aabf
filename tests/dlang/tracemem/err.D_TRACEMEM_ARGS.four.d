/* Address, size and dynamic size are all. */
BEGIN { tracemem(alloca(8), 8, 4, 2); }
